#pragma once

// What an undecided race shows at one look beside its guaranteed intervals: how sure the order of two contenders
// is, and how long it will take to decide.
//
//   slower_by_now(table, i, leader);      // 0.93: i is slower than the leader with 93% confidence
//   rest_of_race(pairs, 5.1, 8, 0.03);    // half of the courses decide within 5 more heats, 340 s
//
// Both are for display: no verdict rests on them, and no error rate of all looks together is claimed.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "stats/burst_plan.h"
#include "stats/e_process.h"
#include "stats/interval.h"
#include "stats/pair_table.h"
#include "stats/ranking.h"

namespace bakeoff::stats {

// The one-sided confidence of Student's t that a's mean log time is above b's, from the paired differences of the
// heats of this look alone (of the estimator that decides between the two): with n heats,
// P(T <= mean sqrt(n) / sd) at n - 1 degrees of freedom. Where gaps of any size were equally plausible before the
// race, of the orders stated with confidence p a share p is right, whatever made one look.
// Nothing below two heats, or if all differences are equal.
std::optional<double> slower_by_now(const PairTable& table, size_t a, size_t b);

// An open contender against the leader, of d = log(low / high) by index.
struct OpenPair {
  EProcess seen = {};   // the heats so far, at least one
  Interval known = {};  // of the mean of d, so far
  double alpha = 0;     // of that interval
  // Variance of d in a heat: of those so far, and of those to come (HeatVariance of stats/burst_plan.h).
  double seen_variance = 0, next_variance = 0;
  double heat_s = 0;  // what the contender adds to the duration of a heat, in seconds
};

// At the level that `race` gives to the pairs of contenders that are open now. `past`: the heats of the pair;
// `rounds`: of a heat to come.
OpenPair open_pair(const PairTable& table, const Race& race, const RankingOptions& options, size_t contender,
                   std::span<const PastHeat> past, int64_t rounds, double heat_s);

// What is left of a race until every contender is decided against the leader: medians over simulated courses.
struct Rest {
  double heats = 0, seconds = 0;
  double low_s = 0, high_s = 0;  // of 8 in 10 courses
  bool more = false;             // in half of the courses these heats are not enough: a lower bound
  bool operator==(const Rest&) const = default;
};

// Simulates courses of the race. In each, a pair's gap is drawn from what its heats have shown (normal about their
// mean), and further heats are drawn about that gap until the pair's interval, at its boundary
// (stats/boundary.h), is decided (judge() of stats/verdict.h). `leader_s`: what the leader adds to the duration
// of a heat; `live`: members of a heat. With a fixed seed: the same input has the same rest. Pairs decided
// earlier by a promise, by the release of alpha or later by a backup are not foreseen.
Rest rest_of_race(std::span<const OpenPair> pairs, double leader_s, size_t live, double margin);

}  // namespace bakeoff::stats
