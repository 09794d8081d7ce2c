#pragma once

// A recipe: what to race. It is validated once, here; all other rooms rely on it.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time_budget.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "recipe/contender.h"
#include "recipe/studies.h"

namespace bakeoff::recipe {

struct Data {
  std::string kind = "synthetic";                               // a word of data_kind()
  std::filesystem::path path = {};                              // absolute
  std::map<std::string, std::vector<std::string>> inputs = {};  // by input; files are absolute
  std::vector<std::string> categories = {};
  std::string delimiter = ",";
  std::string resize = "none";
  double expansion = 100;
  int64_t samples = 1000;
  bool shuffle = false;
  bool operator==(const Data&) const = default;
};

// Of one command, from its start to its report: preparation, gate, race and studies.
struct Budget {
  double minutes = 10;
  int64_t heats = 40;
  // The race ends when everything is decided, or when that is planned to take longer than the minutes.
  bool until_decided = false;
  // The minutes are those of the studies after the race too: --budget. False: those of proofs and race alone.
  bool includes_studies = false;
  static constexpr double kNoLimit = TimeBudget::kNoLimit;  // minutes: heats alone are limited
  bool unlimited_time() const { return minutes == kNoLimit; }
  // The same as a clock that began at `begin_ns` (monotonic).
  TimeBudget time(int64_t begin_ns) const { return TimeBudget(60 * minutes, begin_ns); }
  bool operator==(const Budget&) const = default;
};

// When a round of bursts counts as disturbed, and the consequences (evidence/host_rounds.h). Shares: 0.05 =
// 5%.
struct HostRule {
  double max_steal = 0.05;         // share of the processors' time that the hypervisor or a quota takes
  double max_others = 0.10;        // share of the processors' time that other processes use
  double max_pressure = 0.10;      // share of the wall time in which a task waits for memory or a disk
  double max_clock_change = 0.10;  // change of the processor's speed from the round's start to its end
  double max_busy = 0.5;           // share of disturbed rounds above which the verdict is refused
  bool operator==(const HostRule&) const = default;
};

struct Race {
  int64_t threads = 0;  // 0: as many as allowed CPUs
  int64_t live = 8;
  int64_t warmup_steps = 5;
  int64_t bursts = 0;                  // of a contender in a heat; 0: planned from the race's own data
  double burst_seconds = 0;            // 0: planned from the race's own data
  std::string allocator = "default";   // default | tuned | jemalloc | mimalloc | tcmalloc
  std::string pin = "auto";            // auto | none | CPUs as in parse_cpus()
  std::string huge_pages = "default";  // default | off | malloc
  bool randomise_addresses = true;
  double cooldown_seconds = 0;        // pause before every burst
  std::string device = "auto";        // auto | cpu | cuda
  int64_t gpu_clock_mhz = 0;          // clock at which GPUs are locked; 0: not locked
  int64_t sample_ms = 100;            // interval of the sampling thread, 10 to 1000; 0: no sampling
  bool nvtx = false;                  // mark steps and bursts for NVIDIA's profilers
  std::set<std::string> stated = {};  // keys that the recipe sets; a machine's profile may set the others
  int64_t confirm_heats = 3;          // heats that measure the winner again after the decision
  double noise_ceiling = 0;           // promise about restarted processes (stats/ranking.h); 0: none
  int64_t parity_steps = 10;
  double stage_seconds = 300;
  HostRule host = {};
  bool proofs_alone = false;  // set by a command that times nothing: devices may share processors
  bool operator==(const Race&) const = default;
};

// What a machine costs. 0: not stated.
struct Cost {
  double per_hour = 0;        // price of one hour, in `currency`
  std::string currency = {};  // as shown: "USD"
  double grams_per_kwh = 0;   // CO2 of its electricity
  bool operator==(const Cost&) const = default;
};

// A published table to compare with the measured one (summary/published.h).
struct PublishedTable {
  std::filesystem::path file = {};  // absolute; empty: none
  std::string text = {};
  bool operator==(const PublishedTable&) const = default;
};

struct Recipe {
  std::string name = {};
  std::filesystem::path file = {};
  bool shipped = false;  // a file of recipes/ inside the program, not on disk (recipe/shipped.h)
  bool changed = false;  // its text is that of `file` with changes (recipe/changes.h): its lines are others
  std::string text = {};
  ir::Workload workload = {};
  std::filesystem::path weights = {};  // initial ones, absolute; empty: drawn from the seed
  ir::Training training = {};
  Data data = {};
  std::vector<Contender> contenders = {};
  std::string baseline = {};  // id of the contender that all are held against; empty: none
  double margin = 0.03;
  double alpha = 0.01;
  Budget budget = {};
  Race race = {};
  Cost cost = {};
  PublishedTable published = {};
  Latency latency = {};
  Generate generate = {};
  Search search = {};
  LargestBatch largest_batch = {};
  Scaling scaling = {};
  Target target = {};
  Fit fit = {};
};

// Reads and checks a recipe: the file of that name, else NAME.toml, else the recipe inside the program
// (recipe/shipped.h). Errors name file, line, key and the remedy.
Result<Recipe> load(const std::filesystem::path& file);
// The text of a recipe with these contenders in place of its own.
Result<std::string> with_contenders(std::string_view text, const std::vector<Contender>& contenders);
// Reads a recipe from text; relative paths are relative to the folder of `file`. `shipped`: it is one inside the
// program; its relative paths are those of files there, else relative to the working directory.
Result<Recipe> parse(std::string_view text, const std::filesystem::path& file, bool shipped = false);

// Reads a recipe from a run's record. It opens no file: neither workload nor published table nor scripts.
// The record has their contents (plan/recorded_recipe.h).
Result<Recipe> parse_recorded(std::string_view text, const std::filesystem::path& file);

// Error: no contender of the recipe has this id; it names the nearest, or all.
Status check_baseline(const Recipe& recipe, const std::string& name);

// "race.toml:7", the line where the recipe sets `section`.`key`; only the file if it does not, or was changed.
std::string where(const Recipe& recipe, const std::string& section, const std::string& key);

// "race.toml:9": the line of a contender's setting, or of its table if that does not state it.
std::string where(const Recipe& recipe, const Contender& contender, const std::string& setting);

}  // namespace bakeoff::recipe
