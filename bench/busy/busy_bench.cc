// busy_bench [--quick] [--short N] [--long N] [--seed N]: races of real processes under planted load, and how
// many of their verdicts were false.
// busy_bench --gaps N: N races each of contenders that are identical, 3%, 5% and 10% apart, every second one with a
// mild neighbour, with bursts and heats as the engine plans them and at most 3 minutes: verdicts and what they cost.
// busy_bench --identical N: the same with N races of identical contenders alone.
// The contenders (the `fake` framework with `work`) do a counted amount of
// work, so that the truth is known under any load: a pair does the same, or one does 30% more.
//
// A verdict is false when it orders identical contenders, when it says the light one is slower or the two are
// the same, or when an interval excludes the true ratio by more than a hundredth of it. Each race is judged as
// reported, and once more as if the recipe had asked for a verdict whatever the host did (max_busy = 1): what
// the statistics alone make of it.

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "evidence/evidence.h"
#include "ir/text.h"
#include "plan/lane.h"
#include "plan/plan.h"
#include "planted_load.h"
#include "proc/launcher.h"
#include "race/race.h"
#include "summary/summarise.h"
#include "zoo/zoo.h"

namespace bakeoff::bench {
namespace {

constexpr double kMargin = 0.03;
constexpr int kUnits = 100;

enum class Length { kBrief, kLong, kPlanned };  // kPlanned: as the engine plans it

struct Kind {
  int apart;  // percent
  Length length;
  Load load;
  double truth() const { return 1 + apart / 100.0; }
  std::string text() const {
    static const char* const kNames[] = {"short", "long", "planned"};
    return fmt::format("{:<7} {:<9} {:<24}", kNames[static_cast<int>(length)],
                       apart > 0 ? fmt::format("{}% apart", apart) : "identical", name(load));
  }
};

std::string recipe_text(const Kind& kind, const char* more) {
  const bool brief = kind.length == Length::kBrief;
  std::string bursts = "confirm_heats = 0\n";
  if (kind.length != Length::kPlanned)
    bursts = fmt::format("bursts = {}\nburst_seconds = {}\n", brief ? 2 : 4, brief ? 0.03 : 0.2);
  return fmt::format(
      "workload = \"mlp_small\"\nbatch = 50\nmargin = {}\ncontenders = [{{ framework = \"torch\" }}]\n"
      "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[budget]\nheats = {}\n[race]\nwarmup_steps = 3\n{}{}",
      kMargin, brief ? 12 : 40, bursts, more);
}

Plan make_plan(const fs::path& folder, const Kind& kind, unsigned seed) {
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder).value()};
  plan.manifest.recipe_text = recipe_text(kind, "");
  plan.manifest.recipe_file = "busy.toml";
  plan.recipe = recipe::parse_recorded(plan.manifest.recipe_text, "busy.toml").value();
  plan.recipe.training.seed = seed;
  plan.recipe.budget.minutes = kind.length == Length::kPlanned ? 3 : 60;
  plan.measure_peak = [](const std::vector<int>&) { return roofline::Limits{}; };
  plan.manifest.workload_text = ir::dump(zoo::build("mlp_small").value());
  for (const bool heavy : {false, true}) {
    const Contender contender{.id = heavy ? "heavy" : "light",
                              .framework = "fake",
                              .environment = "fake",
                              .script = heavy ? "heavy.py" : "light.py"};
    plan.manifest.contenders.push_back(contender);
    plan.manifest.not_started.emplace_back();
    Lane lane;
    lane.entry.contender = contender;
    lane.entry.script = plan.directory.scripts() / contender.script;
    const int units = heavy ? kUnits * (100 + kind.apart) / 100 : kUnits;
    lane.entry.worker = {.python = "/usr/bin/python3",
                         .runner = BAKEOFF_SOURCE_DIR "/runners:" BAKEOFF_SOURCE_DIR "/runners/tests",
                         .framework = "fake",
                         .options = {{"work", std::to_string(units)}},
                         .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}},
                         .stage_seconds = 120};
    plan.lanes.push_back(std::move(lane));
  }
  return plan;
}

struct Outcome {
  std::string text = {};
  bool refused = false, decided = false, wrong = false;
};

Outcome judge(const Summary& s, const Kind& kind) {
  Outcome outcome{.refused = !s.refusal.empty(), .decided = s.decided};
  if (s.ranked.size() < 2) return {.text = "not ranked: " + s.sentence};
  const Row& leader = s.ranked[0];
  const Row& row = s.ranked[1];
  const bool heavy_leads = leader.contender.id == "heavy";
  const double truth = heavy_leads ? 1 / kind.truth() : kind.truth();
  outcome.text = fmt::format("{} {:.3f} [{:.3f}, {:.3f}]{}", row.verdict, row.ratio.value, row.ratio.low,
                             row.ratio.high, heavy_leads && kind.apart > 0 ? " (the heavy one leads)" : "");
  if (outcome.refused) {
    outcome.text = "refused";
    return outcome;
  }
  const bool slower = row.verdict.find("slower") != std::string::npos;
  outcome.wrong = (slower && (kind.apart == 0 || heavy_leads)) ||
                  (row.verdict == "same" && kind.truth() > 1 + kMargin) || row.verdict == "faster" ||
                  row.ratio.low > 1.01 * truth || row.ratio.high < truth / 1.01;
  return outcome;
}

struct Count {
  int races = 0, refused = 0, decided = 0, wrong = 0, would_be_decided = 0, would_be_wrong = 0, broken = 0;
  double decided_s = 0;  // duration of the races that were decided, together
};

void run_one(const Kind& kind, unsigned seed, const fs::path& folder, Count& count) {
  PlantedLoad load(kind.load, seed);
  if (!load.why_not().empty()) {
    fmt::print("{}: not planted: {}\n", name(kind.load), load.why_not());
    return;
  }
  Plan plan = make_plan(folder, kind, seed);
  std::vector<Parity> parities;
  for (const Contender& c : plan.manifest.contenders) parities.push_back({.contender = c.id});
  const int64_t begin = monotonic_clock().now_ns();
  const auto raced = race(plan, parities, {}, [](const Happening&) {});
  const double took_s = seconds_since(begin);
  const auto trials = plan.directory.read<Trial>().value();
  const auto summary = summarise(plan.manifest, parities, trials, {});
  plan.manifest.recipe_text = recipe_text(kind, "max_busy = 1\n");
  const auto bare = summarise(plan.manifest, parities, trials, {});
  ++count.races;
  if (!raced || !summary || !bare || summary->ranked.size() < 2) {
    ++count.broken;
    fmt::print("broken: {}\n", summary && !summary->unranked.empty() && summary->unranked[0].failure
                                   ? summary->unranked[0].failure->reason
                                   : "no summary");
    return;
  }
  const Outcome seen = judge(*summary, kind), alone = judge(*bare, kind);
  count.refused += seen.refused;
  count.decided += seen.decided;
  if (seen.decided) count.decided_s += took_s;
  count.wrong += seen.wrong;
  count.would_be_decided += alone.decided;
  count.would_be_wrong += alone.wrong;
  fmt::print("{} {:>2} heats, {:>3.0f} s, disturbed {:>3} of {:>3}: {}{}; by statistics alone: {}{}\n",
             kind.text(), summary->heats, took_s, summary->host.busy, summary->host.judged, seen.text,
             seen.wrong ? " FALSE" : "", alone.text, alone.wrong ? " FALSE" : "");
  std::fflush(stdout);
}

// Races in a folder of their own each, which is removed afterwards.
class Races {
 public:
  Races() {
    std::string name = (fs::temp_directory_path() / "bakeoff-busy-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Races() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Races(const Races&) = delete;
  Races& operator=(const Races&) = delete;
  void run(const Kind& kind, unsigned seed, Count& count) {
    const fs::path folder = folder_ / std::to_string(number_++);
    run_one(kind, seed, folder, count);
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

 private:
  fs::path folder_;
  int number_ = 0;
};

int verdict(const std::string& what, const Count& count) {
  const bool ok = count.wrong == 0 && count.broken == 0;
  fmt::print("false verdicts of {}: {} of {} (bar: 0) {}\n", what, count.wrong, count.races,
             ok ? "ok" : "MISSED");
  return ok ? 0 : 1;
}

int under_load(int brief, int longer, unsigned seed) {
  constexpr Load kLoads[] = {Load::kNone,  Load::kLoop,  Load::kRegimes, Load::kMemory,
                             Load::kLoops, Load::kShort, Load::kQuota};
  Races races;
  Count count;
  for (int i = 0; i < brief + longer; ++i) {
    const Kind kind{.apart = i % 2 == 1 ? 30 : 0,
                    .length = i < brief ? Length::kBrief : Length::kLong,
                    .load = kLoads[(i / 2) % std::size(kLoads)]};
    races.run(kind, seed + static_cast<unsigned>(i), count);
  }
  fmt::print("{} races: {} refused, {} decided, {} failed; by statistics alone {} decided, {} false\n",
             count.races, count.refused, count.decided, count.broken, count.would_be_decided,
             count.would_be_wrong);
  return verdict("races under planted load", count);
}

int with_gaps(const std::vector<int>& gaps, int each, unsigned seed) {
  Races races;
  std::map<std::string, Count> counts;
  for (int i = 0; i < each * static_cast<int>(gaps.size()); ++i) {
    const int turn = i / static_cast<int>(gaps.size());
    const Kind kind{.apart = gaps[static_cast<size_t>(i) % gaps.size()],
                    .length = Length::kPlanned,
                    .load = turn % 2 == 0 ? Load::kNone : Load::kMild};
    races.run(kind, seed + static_cast<unsigned>(i), counts[kind.text()]);
  }
  Count all;
  for (const auto& [kind, count] : counts) {
    fmt::print(
        "{}: {} races, {} refused, {} decided in {:.0f} s on average; by statistics alone {} decided, {} false\n",
        kind, count.races, count.refused, count.decided, count.decided_s / std::max(1, count.decided),
        count.would_be_decided, count.would_be_wrong);
    all.races += count.races, all.wrong += count.wrong, all.broken += count.broken;
  }
  return verdict("races with planted gaps", all);
}

}  // namespace
}  // namespace bakeoff::bench

int main(int count, char** words) {
  int brief = 100, longer = 20, gaps = 0, identical = 0;
  unsigned seed = 1;
  for (int i = 1; i < count; ++i) {
    const bool more = i + 1 < count;
    if (std::strcmp(words[i], "--quick") == 0) brief = 8, longer = 0;
    if (more && std::strcmp(words[i], "--short") == 0) brief = std::atoi(words[++i]);
    if (more && std::strcmp(words[i], "--long") == 0) longer = std::atoi(words[++i]);
    if (more && std::strcmp(words[i], "--gaps") == 0) gaps = std::atoi(words[++i]);
    if (more && std::strcmp(words[i], "--identical") == 0) identical = std::atoi(words[++i]);
    if (more && std::strcmp(words[i], "--seed") == 0) seed = static_cast<unsigned>(std::atoi(words[++i]));
  }
  if (const auto started = bakeoff::proc::start_launcher(); !started) {
    fmt::print(stderr, "{}\n", started.error().text());
    return 2;
  }
  if (identical > 0) return bakeoff::bench::with_gaps({0}, identical, seed);
  if (gaps > 0) return bakeoff::bench::with_gaps({0, 3, 5, 10}, gaps, seed);
  return bakeoff::bench::under_load(brief, longer, seed);
}
