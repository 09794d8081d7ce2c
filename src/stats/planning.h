#pragma once

// Arithmetic before and after a race: how many pairs it will take, how long a block should be, and after how
// many steps a slow start has paid for itself.

#include <cstdint>
#include <optional>

namespace bakeoff::stats {

// Pairs until a gap `delta` between two contenders is decided, when paired log ratios have standard deviation
// sd: (z(1 - alpha/2) + z(power))^2 (sd/delta)^2 + 5, rounded up. With the defaults 17.8 (sd/delta)^2 + 5.
// The first term is the fixed-sample size of a two-sided test with known sd; the 5 is what an unknown sd and
// a look after every pair cost at least. delta and sd on the same scale (log, or relative for small ones);
// sd >= 0, 0 < alpha < 1, 0 < power < 1. Nothing when delta is 0: no number of pairs finds no gap.
// A count that does not fit is the largest int64_t.
std::optional<int64_t> pairs_needed(double sd, double delta, double alpha = 0.01, double power = 0.95);

// Steps of one process in one block that cost least for the precision they buy (the optimal allocation of
// two-stage sampling, Cochran 1977): sqrt((start_cost/step_cost) (within_variance/between_variance)), at
// least 1. between_variance: of process means about each other, tau^2; within_variance: n_eff-corrected
// variance of a step about its process's mean, sigma_w^2 (a long-run variance). Costs in any one unit, > 0.
// Nothing when between_variance is 0: then one process with all the steps is best.
std::optional<int64_t> steps_per_block(double start_cost, double step_cost, double within_variance,
                                       double between_variance);

// What N steps of a contender cost from nothing: startup + N * step. One unit of time for both.
struct RunCost {
  double startup = 0;  // import, build, compile, and what the first steps take beyond `step` each
  double step = 0;     // steady
  double after(double steps) const { return startup + steps * step; }
  bool operator==(const RunCost&) const = default;
};

// The least N >= 0 such that `chaser` is strictly cheaper than `rival` after N steps and ever after.
// 0: cheaper from the start. Nothing: never (a step is no cheaper, and so no head start lasts; with equal
// steps the startup decides), or after more steps than int64_t holds.
std::optional<int64_t> cheaper_from(const RunCost& chaser, const RunCost& rival);

// A contender beside the leader of the race (the one with the cheaper step).
struct BreakEven {
  // Below this many steps the contender's whole run is no dearer than the leader's; 0: never so. Empty: the
  // leader never becomes cheaper.
  std::optional<int64_t> leader_cheaper_from;
  // From this many steps on the contender's whole run is the cheaper one. Empty: never.
  std::optional<int64_t> contender_cheaper_from;
  bool operator==(const BreakEven&) const = default;
};
BreakEven break_even(const RunCost& contender, const RunCost& leader);

}  // namespace bakeoff::stats
