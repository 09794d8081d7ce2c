// busy_bench [--quick] [--short N] [--long N] [--seed N]: races of real processes under planted load, and how
// many of their verdicts were false. The contenders (the `fake` framework with `work`) do a counted amount of
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
#include <string>

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

struct Kind {
  bool apart;  // by 30%
  bool brief;
  Load load;
  double truth() const { return apart ? 1.3 : 1; }
};

std::string recipe_text(const Kind& kind, const char* more) {
  return fmt::format(
      "workload = \"mlp_small\"\nbatch = 50\nmargin = {}\ncontenders = [{{ framework = \"torch\" }}]\n"
      "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[budget]\nheats = {}\n[race]\nwarmup_steps = 3\nbursts = {}\n"
      "burst_seconds = {}\n{}",
      kMargin, kind.brief ? 12 : 40, kind.brief ? 2 : 4, kind.brief ? 0.03 : 0.2, more);
}

Plan make_plan(const fs::path& folder, const Kind& kind, unsigned seed) {
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder).value()};
  plan.manifest.recipe_text = recipe_text(kind, "");
  plan.manifest.recipe_file = "busy.toml";
  plan.recipe = recipe::parse_recorded(plan.manifest.recipe_text, "busy.toml").value();
  plan.recipe.training.seed = seed;
  plan.recipe.budget.minutes = 60;
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
    const int units = heavy && kind.apart ? kUnits * 13 / 10 : kUnits;
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
                             row.ratio.high, heavy_leads && kind.apart ? " (the heavy one leads)" : "");
  if (outcome.refused) {
    outcome.text = "refused";
    return outcome;
  }
  const bool slower = row.verdict.find("slower") != std::string::npos;
  outcome.wrong = (slower && (!kind.apart || heavy_leads)) || (row.verdict == "same" && kind.apart) ||
                  row.verdict == "faster" || row.ratio.low > 1.01 * truth || row.ratio.high < truth / 1.01;
  return outcome;
}

struct Count {
  int races = 0, refused = 0, decided = 0, wrong = 0, would_be_decided = 0, would_be_wrong = 0, broken = 0;
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
  const auto raced = race(plan, parities, {}, [](const Happening&) {});
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
  count.wrong += seen.wrong;
  count.would_be_decided += alone.decided;
  count.would_be_wrong += alone.wrong;
  fmt::print("{:<5} {:<9} {:<24} {:>2} heats, disturbed {:>3} of {:>3}: {}{}; by statistics alone: {}{}\n",
             kind.brief ? "short" : "long", kind.apart ? "30% apart" : "identical", name(kind.load),
             summary->heats, summary->host.busy, summary->host.judged, seen.text, seen.wrong ? " FALSE" : "",
             alone.text, alone.wrong ? " FALSE" : "");
  std::fflush(stdout);
}

int all(int brief, int longer, unsigned seed) {
  constexpr Load kLoads[] = {Load::kNone,  Load::kLoop,  Load::kRegimes, Load::kMemory,
                             Load::kLoops, Load::kShort, Load::kQuota};
  std::string name = (fs::temp_directory_path() / "bakeoff-busy-XXXXXX").string();
  const fs::path folder = ::mkdtemp(name.data());
  Count count;
  for (int i = 0; i < brief + longer; ++i) {
    const Kind kind{.apart = i % 2 == 1, .brief = i < brief, .load = kLoads[(i / 2) % std::size(kLoads)]};
    run_one(kind, seed + static_cast<unsigned>(i), folder / std::to_string(i), count);
    std::error_code ignored;
    fs::remove_all(folder / std::to_string(i), ignored);
  }
  fs::remove_all(folder);
  fmt::print("{} races: {} refused, {} decided, {} failed; by statistics alone {} decided, {} false\n",
             count.races, count.refused, count.decided, count.broken, count.would_be_decided,
             count.would_be_wrong);
  const bool ok = count.wrong == 0 && count.broken == 0;
  fmt::print("false verdicts of races under planted load: {} of {} (bar: 0) {}\n", count.wrong, count.races,
             ok ? "ok" : "MISSED");
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace bakeoff::bench

int main(int count, char** words) {
  int brief = 100, longer = 20;
  unsigned seed = 1;
  for (int i = 1; i < count; ++i) {
    const bool more = i + 1 < count;
    if (std::strcmp(words[i], "--quick") == 0) brief = 8, longer = 0;
    if (more && std::strcmp(words[i], "--short") == 0) brief = std::atoi(words[++i]);
    if (more && std::strcmp(words[i], "--long") == 0) longer = std::atoi(words[++i]);
    if (more && std::strcmp(words[i], "--seed") == 0) seed = static_cast<unsigned>(std::atoi(words[++i]));
  }
  if (const auto started = bakeoff::proc::start_launcher(); !started) {
    fmt::print(stderr, "{}\n", started.error().text());
    return 2;
  }
  return bakeoff::bench::all(brief, longer, seed);
}
