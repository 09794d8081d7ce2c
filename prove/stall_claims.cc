// V10: work that falls into few steps. What decides (stats/pair_table.h, stalls()) must measure it, whatever
// the length of bursts.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prove/parallel.h"
#include "prove/report.h"
#include "stats/ranking.h"
#include "stats/trimmed.h"

namespace bakeoff::prove {
namespace {

using stats::testing::Machine;
using stats::testing::NoiseModel;

constexpr int kHeats = 40;
constexpr double kPlanted = 0.05;

struct Ended {
  double gap = 0;
  bool wrong = false;
  bool by_mean = false;
};

// Contender 0 against an equal one, or against itself without the planted work, until a verdict.
Ended race_once(const NoiseModel& noise, double truth, uint64_t seed, Mutant mutant) {
  Machine machine(noise, {0, 0}, seed);
  // Without a margin a table compares no stalls.
  const bool compares = mutant != Mutant::kTrimmedAlone;
  stats::PairTable table(2, compares ? std::optional(std::log1p(kMargin)) : std::nullopt,
                         stats::Backup::kOnSigns);
  Ended ended;
  for (int heat = 0; heat < kHeats; ++heat) {
    if (!table.add(machine.heat())) break;
    const stats::PairGap pair = rank(table, {.alpha = kAlpha, .margin = kMargin}).pairs.front();
    const stats::Verdict verdict = stats::judge(pair.interval, kMargin);
    ended = {.gap = pair.gap, .by_mean = pair.stalls.decides};
    if (!decided(verdict)) continue;
    ended.wrong = truth > 0 ? pair.interval.low <= 0 : !says_same(verdict);
    break;
  }
  return ended;
}

struct Rhythm {
  int steps = 1, bursts = 1;  // steps that count, of a burst; bursts of a heat
};
constexpr Rhythm kRhythms[] = {{1, 100}, {2, 60}, {4, 30}, {13, 12}};

NoiseModel noise_of(const Rhythm& rhythm, int recurs) {
  return {.process = 0.003,
          .machine = 0.03,
          .machine_phi = 0.7,
          .step = 0.05,
          .step_phi = 0.5,
          .spike_share = 0.01,
          .spike = 0.5,
          .recurs = recurs,
          .rounds = rhythm.bursts,
          .steps = rhythm.steps};
}

void recurring(const Options& options, const Rhythm& rhythm, int recurs, int n, Report& report) {
  const auto ends = for_each_seed(n, [&](int i) {
    return race_once(noise_of(rhythm, recurs), std::log1p(kPlanted),
                     options.seed * 217645199 + static_cast<uint64_t>(i), options.mutant);
  });
  std::vector<double> gaps;
  int wrong = 0, by_mean = 0;
  for (const Ended& end : ends) {
    gaps.push_back(end.gap);
    wrong += end.wrong;
    by_mean += end.by_mean;
  }
  const double percent = 100 * std::expm1(stats::mean(gaps));
  const double error = 100 * std::sqrt(stats::variance(gaps) / n);
  const std::string what = fmt::format("5% more work in every {}th step, bursts of {}", recurs, rhythm.steps);
  report.add(
      {.id = "V10",
       .what = what,
       .bar = "5% +- 1%",
       .seen = fmt::format("{:.2f} +- {:.2f}%; by the mean in {:.0f}%", percent, error, 100.0 * by_mean / n),
       .held = std::abs(percent - 100 * kPlanted) <= 1 + 3 * error});
  report.add(at_most("V10", what + ": called the same, or faster", wrong, n, kAlpha));
}

}  // namespace

void prove_stalls(const Options& options, Report& report) {
  if (!wanted(options, "V10")) return;
  const int n = tier(options, 200, 2000);
  for (const Rhythm& rhythm : kRhythms) {
    for (const int recurs : {10, 50}) recurring(options, rhythm, recurs, n, report);
    const auto ends = for_each_seed(n, [&](int i) {
      return race_once(noise_of(rhythm, 0), 0, options.seed * 236887691 + static_cast<uint64_t>(i),
                       options.mutant);
    });
    const auto wrong = std::count_if(ends.begin(), ends.end(), [](const Ended& end) { return end.wrong; });
    report.add(at_most("V10", fmt::format("identical, bursts of {}: called different", rhythm.steps),
                       static_cast<int>(wrong), n, kAlpha));
  }
}

}  // namespace bakeoff::prove
