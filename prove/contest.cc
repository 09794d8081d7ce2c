// T12: all rules on identical traces.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "prove/models.h"
#include "prove/parallel.h"
#include "prove/report.h"

namespace bakeoff::prove {
namespace {

constexpr std::array<double, 3> kSlowdowns = {0, 0.02, 0.05};
constexpr int kStepsABurst = 26;  // 104 a process: "100 steps" need them

// calls[truth][rule] of one trace.
using Calls = std::array<std::vector<Call>, kSlowdowns.size()>;

template <typename MakeSource>
Calls trace_calls(const MakeSource& make_source, int blocks) {
  Calls calls;
  for (size_t truth = 0; truth < kSlowdowns.size(); ++truth) {
    const Source source = make_source(kSlowdowns[truth]);
    std::vector<Block> trace;
    for (int i = 0; i < blocks; ++i) trace.push_back(source());
    for (const Rule& rule : rules()) calls[truth].push_back(rule.decide(trace));
  }
  return calls;
}

Contest tally(const std::string& noise, const std::vector<Calls>& all) {
  Contest contest = {noise, static_cast<int>(all.size()), {}};
  for (size_t r = 0; r < rules().size(); ++r) {
    Score score = {.rule = rules()[r].name, .processes = rules()[r].processes};
    for (const Calls& calls : all) {
      score.false_verdicts += calls[0][r] != Call::kNothing;
      score.found_2 += calls[1][r] == Call::kASlower;
      score.found_5 += calls[2][r] == Call::kASlower;
    }
    contest.scores.push_back(score);
  }
  return contest;
}

// No rule may be as powerful and yet wrong less often, beyond what chance explains.
void judge_contest(const Contest& contest, Report& report) {
  const Score& ours = contest.scores[0];
  const int n = contest.traces;
  std::string better;
  for (const Score& score : contest.scores) {
    if (score.rule.starts_with("Bakeoff")) continue;
    const bool as_powerful = score.found_2 >= ours.found_2 && score.found_5 >= ours.found_5;
    const int most = most_by_chance(n, std::max(1.0 / n, static_cast<double>(score.false_verdicts) / n));
    if (as_powerful && score.false_verdicts < ours.false_verdicts && ours.false_verdicts > most) {
      better += (better.empty() ? "" : ", ") + score.rule;
    }
  }
  report.add({.id = "T12",
              .what = contest.noise,
              .bar = "fewest false at such power",
              .seen = fmt::format("A/A {:.1f}%, 2%: {:.0f}%, 5%: {:.0f}%{}", 100.0 * ours.false_verdicts / n,
                                  100.0 * ours.found_2 / n, 100.0 * ours.found_5 / n,
                                  better.empty() ? "" : "; better: " + better),
              .held = better.empty()});
}

}  // namespace

void hold_contest(const Options& options, Report& report) {
  if (!wanted(options, "T12")) return;
  const int n = tier(options, 60, 500);
  const auto hold = [&](const std::string& noise, int blocks, const auto& make_source) {
    report.contests.push_back(
        tally(noise, for_each_seed(n, [&](int i) {
                const uint64_t seed = options.seed * 141650963 + static_cast<uint64_t>(i);
                return trace_calls([&](double slowdown) { return make_source(slowdown, seed); }, blocks);
              })));
    judge_contest(report.contests.back(), report);
  };
  for (const Model& model : models()) {
    if (model.resolution > 0 || model.needs_backup) continue;
    stats::testing::NoiseModel noise = model.noise;
    noise.steps = kStepsABurst;
    hold(model.name, kBlocksOfTrace,
         [&](double slowdown, uint64_t seed) { return simulated(noise, slowdown, seed); });
  }
  if (options.recorded.empty()) return;
  const int blocks = std::min(kBlocksOfTrace, static_cast<int>(options.recorded.size()));
  hold(fmt::format("recorded, {} blocks", options.recorded.size()), blocks,
       [&](double slowdown, uint64_t seed) { return replayed(options.recorded, slowdown, seed); });
}

}  // namespace bakeoff::prove
