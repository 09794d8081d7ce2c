#pragma once

// Percentiles of latencies with bounds that assume nothing about their shape.
//
//   const Percentile p99 = percentile(latencies_by_process, 0.99);
//   p99.value, p99.bounds       // bounds.high may be infinite: too few requests to bound it from above
//
// An order statistic X(r) of n independent values lies below the p-quantile or above it as a binomial number
// with parameters n and p is at least r or less; so exact bounds are order statistics whose ranks come from
// the binomial distribution (David & Nagaraja, Order Statistics, 3rd ed. 2003, section 7.1; MLPerf's load
// generator takes the same binomial distribution for its early stopping).
//
// Requests that queue are not independent. They are counted as fewer: as many as the series "slower than the
// percentile or not" is worth, and no more than the latencies themselves are (slow requests come in clusters
// that few of them show), autocorrelation summed by Geyer's initial monotone sequence (Practical Markov Chain
// Monte Carlo, Statistical Science 7, 1992, section 3.3). In simulated queues whose truth is known bounds of
// 99% then hold 97.5% to 100% of the time; with all requests counted 50% to 95% (percentiles_test.cc).

#include <cstdint>
#include <span>
#include <vector>

#include "stats/interval.h"

namespace bakeoff::stats {

// Ranks, from 1, of the order statistics that enclose the p-quantile of n independent values from any
// distribution with probability `level` at least, half of the rest on either side. `low` is 0 and `high` is
// n + 1 where no order statistic will do. n >= 0, 0 < p < 1, 0 < level < 1.
struct Ranks {
  int64_t low = 0;
  int64_t high = 0;
  bool operator==(const Ranks&) const = default;
};
Ranks quantile_ranks(int64_t n, double p, double level);

// The least n for which quantile_ranks(n, p, level) has an upper end.
int64_t least_for_upper_bound(double p, double level);

// How many independent values a series that is correlated in time is worth: n / (1 + 2 x the sum of its
// autocorrelations), between 1 and n; n where the series is constant. 0 of nothing.
double effective_count(std::span<const double> series);

struct Percentile {
  double p = 0;      // 0.99
  double value = 0;  // the least value that p of all do not exceed: X(ceil(np))
  Interval bounds = {};
  int64_t n = 0;
  double n_eff = 0;
  bool operator==(const Percentile&) const = default;
};

// Of all values together; each series is in order of time, and independent of the others.
// At least one value.
Percentile percentile(const std::vector<std::vector<double>>& series, double p, double level = 0.99);

}  // namespace bakeoff::stats
