#pragma once

// Percentiles of latencies with bounds that assume nothing about their shape.
//
//   const Percentile p99 = percentile(latencies_by_process, 0.99);
//   p99.value, p99.bounds       // bounds.high may be infinite: too few requests to bound it from above
//
// An order statistic X(r) of n independent values is below or above the p-quantile as a binomial number
// with parameters n and p is at least r or less. So exact bounds are order statistics whose ranks come from
// the binomial distribution (David & Nagaraja, Order Statistics, 3rd ed. 2003, section 7.1; MLPerf's load
// generator uses the same distribution for its early stopping).
//
// Requests that queue are not independent, so they count as fewer: as many as the series "slower than the
// percentile or not" is worth, and no more than the latencies themselves are worth (slow requests come in
// clusters, of which there are few). Autocorrelation is summed by Geyer's initial monotone sequence
// (Practical Markov Chain Monte Carlo, Statistical Science 7, 1992, section 3.3). In simulated queues with
// known truth, bounds of 99% then hold in 97.5% to 100% of the cases; if all requests were counted, in 50%
// to 95% (percentiles_test.cc).

#include <cstdint>
#include <span>
#include <vector>

#include "stats/interval.h"

namespace bakeoff::stats {

// Ranks, from 1, of the order statistics that enclose the p-quantile of n independent values from any
// distribution with probability at least `level`, half of the rest on either side. `low` is 0 and `high` is
// n + 1 if no order statistic suffices. n >= 0, 0 < p < 1, 0 < level < 1.
struct Ranks {
  int64_t low = 0;
  int64_t high = 0;
  bool operator==(const Ranks&) const = default;
};
Ranks quantile_ranks(int64_t n, double p, double level);

// How many independent values a series that is correlated in time is worth: n / (1 + 2 x the sum of its
// autocorrelations), between 1 and n; n for a constant series; 0 for an empty one.
double effective_count(std::span<const double> series);

struct Percentile {
  double p = 0;      // 0.99
  double value = 0;  // smallest value that a share p of all does not exceed: X(ceil(np))
  Interval bounds = {};
  int64_t n = 0;
  double n_eff = 0;
  bool operator==(const Percentile&) const = default;
};

// The percentile of all values together, at least one. Each series is in order of time and independent of
// the others.
Percentile percentile(const std::vector<std::vector<double>>& series, double p, double level = 0.99);

}  // namespace bakeoff::stats
