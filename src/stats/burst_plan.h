#pragma once

// How long a burst is, and how many bursts a heat has, from what the race has measured so far.
//
//   // after the first heat, whose bursts have several steps each
//   const auto plan = plan_bursts(bursts, lead_ins);  // plan->steps[i]: counted steps of a burst, by contender
//   // before each later heat, from past heats alone
//   rounds = plan_rounds(heat_variance(past), {.start_s = 5, .round_s = 0.6}, gap, alpha, rounds);
//
// Why bursts are planned. What slows the machine for longer than a round hits all contenders alike, so it
// cancels in d, and the more so the faster they alternate; spikes fall into few bursts if bursts are short,
// and are trimmed away (stats/heat_value.h). But each burst begins with a lead-in that does not count and
// with a request. So the plan depends on how quickly the machine's state changes, which the first heat shows.
//
// Validity. Both functions look only at heats that are over, so the lengths of the next heat are known
// before it starts (predictable): heats of unequal variance keep the level (docs/verdicts.md). A running heat
// must never be lengthened because of its own d.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bakeoff::stats {

// A burst as it was timed; only the steps that count.
struct TimedBurst {
  size_t contender = 0;
  double start_s = 0;               // when its first step began; any origin, the same for all bursts
  std::vector<double> step_s = {};  // duration of each step, one by one
};

// What a burst costs besides the steps that count, in seconds: lead-in, request, waking and freezing the
// worker. Index = contender.
using LeadIns = std::vector<double>;

struct BurstPlan {
  double burst_s = 0;               // duration of the steps of a burst that count
  std::vector<int64_t> steps = {};  // counted steps of a burst, by contender; 0: it has no burst
  double round_s = 0;               // one burst of each contender with its lead-in
  // Variance of d between two of the contenders in a heat of one second of bursts: the variance of a heat is
  // this divided by the seconds of its bursts. For the plan, and for bursts of kLongestBurst.
  double variance_s = 0;
  double variance_s_longest = 0;
  bool operator==(const BurstPlan&) const = default;
};

inline constexpr double kLongestBurst = 0.5;  // seconds
inline constexpr double kShortestBurst =
    0.02;                                    // seconds, of contenders whose step takes less than kShortStep
inline constexpr double kShortStep = 0.005;  // seconds

// The number of counted steps for bursts of about `burst_s` seconds: at least one, and at least 20 ms of steps
// that are shorter than 5 ms. step_s > 0.
int64_t counted_steps(double step_s, double burst_s);

// The length of bursts that gives the least variance of d per second of wall time. All contenders get bursts
// of about the same duration, from one step of the fastest to 0.5 s.
//
// The log times of the steps are modelled as mean of the contender + state of the machine + state of the
// process + noise of the step. Either state is a sum of exponentially correlated parts (time constants from
// two steps to the whole heat), whose variances follow from the products of all pairs of steps at each
// distance in time (non-negative least squares); pairs of different contenders share the machine's state
// alone. Steps far above the others count as spikes. From this follows the variance of d for alternating
// bursts of any length.
//
// Nothing if there are fewer than two contenders with at least 4 bursts, or fewer than 40 steps.
std::optional<BurstPlan> plan_bursts(std::span<const TimedBurst> bursts, const LeadIns& lead_ins);

// Variance of a heat's d: restart + round / rounds.
struct HeatVariance {
  double restart = 0;  // what no number of rounds removes: two fresh processes
  double round = 0;    // of one round, two bursts
  bool operator==(const HeatVariance&) const = default;
};

// From the past heats of a pair: each one's d, the variance of d that its own bursts show (the sum of the two
// HeatMeasure::variance), and its number of rounds. The variance of d is taken together with what 4 heats
// of processes that vary by 1% would have shown, and `restart` is what it exceeds the bursts' own by, at
// least (0.3%)^2 times two: few heats never show that restarting changes nothing. With fewer than two heats:
// 1% for each process and 7% for each burst.
struct PastHeat {
  double d = 0;
  double within = 0;
  int64_t rounds = 1;
};
HeatVariance heat_variance(std::span<const PastHeat> heats);

struct HeatCost {
  double start_s = 0;  // of a heat: starting, warming up and ending all its members
  double round_s = 0;  // one burst of each member with its lead-in
};

inline constexpr int64_t kFewestRounds = 6;  // of which one is left out (stats/heat_value.h)
inline constexpr int64_t kUsualRounds = 16;  // until something is known, of bursts of about 0.3 s

// The number of rounds of a heat with which a gap between two contenders is decided soonest, with intervals
// at level alpha: it minimises n(R) (start + R round), n(R) being the first heat whose half-width (of
// stats/boundary.h, in sd(d)) times sqrt(restart + round / R) is at most `gap`. At least kFewestRounds, and
// at most those that fill `most_s` seconds. It stays at `current`, the number so far, while that costs at
// most a quarter more: what is known of the variances is uncertain, and heats of equal length are of most
// use. gap > 0, log scale; costs > 0.
int64_t plan_rounds(const HeatVariance& variance, const HeatCost& cost, double gap, double alpha,
                    int64_t current = kUsualRounds, double most_s = 60);

}  // namespace bakeoff::stats
