#pragma once

// Scripts and variants of them that race: heats of fresh processes whose bursts of steps alternate, one
// running while all others are frozen, as contenders do (race/race.h).

#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "explain/observed.h"
#include "explain/subject.h"

namespace bakeoff::explain {

struct Lane {
  std::string name = {};  // for progress and log files
  size_t subject = 0;     // which of the scripts it is
  ScriptSpec spec = {};
  Switches switches = Switches::object();
  double step_s = 0;                          // of the script without switches
  double samples = 1;                         // the same, of a step
  double step_with_waits_s = 0;               // the same, with its waits for data
  double start_s = 0;                         // of the script, until its first steps are made
  bool by_step = false;                       // Subject::by_step
  double epoch_samples = 0;                   // samples; a burst takes whole epochs of it; 0: any steps
  double epoch_s = 0;                         // what one takes
  double whole_s = 0;                         // what a whole run takes, where it ends by itself
  std::optional<int64_t> steps_at_most = {};  // that the script makes until its end; absent: not known
};

inline constexpr const char* kNothingToChange = "the switch found nothing to change";

// What a lane gave in one heat.
struct LaneHeat {
  // Log of milliseconds per sample, or of a whole run, by round; NaN: it had no burst.
  std::vector<double> bursts = {};
  bool whole = false;                    // bursts are whole runs
  bool apart = false;                    // each burst is of a process of its own: a whole run, or first steps
  double start_s = 0;                    // from the start of Python until its first steps were made
  std::vector<std::string> thrown = {};  // switches that changed something
  std::vector<double> losses = {};       // of its first steps
  std::string failure = {};              // why there is no measure
  // The script made too few steps for bursts: their number, in steps of the script without switches. 0: it made
  // enough.
  int64_t ends_after = 0;
  bool ok() const { return failure.empty(); }
};

// How much longer a sample takes in one lane than in another, log scale, from the rounds of one heat: their
// mean without the largest and the smallest sixth, and its variance (winsorised; Yuen 1974), as if rounds were
// independent, times the square of Student's t over the normal's at 99%: two rounds tell apart what is 264 times as
// slow, and little else.
struct HeatDifference {
  double d = 0;
  double variance = 0;
  int64_t rounds = 0;
  double least = 0, most = 0;  // of one round
};
// Nothing with fewer than 2 rounds in common.
std::optional<HeatDifference> difference(const LaneHeat& slower, const LaneHeat& faster);

struct HeatOptions {
  std::filesystem::path folder = {};  // for logs
  int64_t rounds = 12;
  double burst_s = 0.12;  // short ones: what slows the machine for a while then hits all lanes of a round
  bool whole = false;     // a burst is a whole run, from the start of Python to the script's end
  // For scripts that end soon: a burst is this number of first steps of a fresh process, without its warm-up, and
  // fewer if a switch makes steps take more samples. 0: all bursts of a lane are of one process.
  int64_t fresh_steps = 0;
  int64_t fewest_rounds = 6;
  bool until_short = false;  // the heat ends once a lane has ended too soon for bursts
  int64_t until_ns = std::numeric_limits<int64_t>::max();  // rounds after the first `fewest_late` end before
  int64_t fewest_late = 4;                                 // rounds of a heat whose time is over
  // Called after each round from the second on, with all lanes so far; if it returns true, the heat ends.
  std::function<bool(const std::vector<LaneHeat>&)> enough = [](const std::vector<LaneHeat>&) {
    return false;
  };
  uint64_t seed = 1;  // of the order of bursts
  // Each burst is of a process of its own.
  bool apart() const { return whole || fresh_steps > 0; }
  Progress progress = kSilent;
};

struct Heat {
  std::vector<LaneHeat> lanes = {};  // in the order of the lanes
  // Share of the processors' time that other processes, or other guests of the host, took during the rounds; 0
  // where it could not be read.
  double others = 0;
};

inline constexpr int64_t kFewestFresh = 6;  // first steps of a fresh process that can be compared

// The fewest steps of a lane that ended too soon for bursts. 0: no lane did, or one ended too soon even to compare
// first steps.
int64_t ended_after(const Heat& heat);
// HeatOptions::fresh_steps for scripts that end after `ended_after` steps: about 2 seconds of steps, at least 12
// steps if these take less than 5 seconds. `step_s`: the slowest script's.
int64_t fresh_steps_of(int64_t ended_after, double step_s);

// Returns early after Ctrl-C.
Heat run_heat(const std::vector<Lane>& lanes, const HeatOptions& options);

}  // namespace bakeoff::explain
