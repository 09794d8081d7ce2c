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

// The number of steps of one process in one block that gives the most precision for its cost (the optimal
// allocation of two-stage sampling, Cochran 1977): sqrt((start_cost/step_cost)
// (within_variance/between_variance)), at least 1. between_variance: variance of process means, tau^2;
// within_variance: n_eff-corrected variance of a step about its process's mean, sigma_w^2 (a long-run
// variance). Costs in one unit, > 0. Nothing if between_variance is 0: then one process with all the steps
// is best.
std::optional<int64_t> steps_per_block(double start_cost, double step_cost, double within_variance,
                                       double between_variance);

// A burst begins with a lead-in of one step that does not count, and with this probability, drawn for each
// burst, of two. With bursts of the same length, work that recurs every so-many-th step would meet the steps
// that count always or never: bursts of two steps, of which one counts, see all or none of what every tenth
// step does.
inline constexpr double kSecondLeadIn = 0.125;

// The cost of N steps of a contender from its start: startup + N * step, in one unit of time.
struct RunCost {
  double startup = 0;  // import, build, compilation, and the time of the first steps beyond `step` each
  double step = 0;     // steady
  double after(double steps) const { return startup + steps * step; }
  bool operator==(const RunCost&) const = default;
};

// The smallest N >= 0 from which on `chaser` is strictly cheaper than `rival`. 0: cheaper from the start.
// Nothing: never (its step is not cheaper, so an advantage does not last; with equal steps the startup
// decides), or after more steps than int64_t holds.
std::optional<int64_t> cheaper_from(const RunCost& chaser, const RunCost& rival);

// A contender compared with the leader of the race, whose step is cheaper.
struct BreakEven {
  // Below this number of steps the contender's whole run costs at most as much as the leader's; 0: never.
  // Empty: the leader never becomes cheaper.
  std::optional<int64_t> leader_cheaper_from;
  // From this number of steps on, the contender's whole run is cheaper. Empty: never.
  std::optional<int64_t> contender_cheaper_from;
  bool operator==(const BreakEven&) const = default;
};
BreakEven break_even(const RunCost& contender, const RunCost& leader);

}  // namespace bakeoff::stats
