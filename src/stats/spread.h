#pragma once

// How far identical contenders differ, and whether a control reduces the difference.
//
//   Spread before = spread_about_zero(d_default);    // paired log ratios of A/A blocks
//   if (p_narrower(d_tuned, d_default) <= 0.05 / controls) keep(tuned);
//
// In an A/A block the two workers are identical and start in random order, so d is symmetric about zero,
// which is known: n blocks give n degrees of freedom, not n - 1.

#include <cstdint>
#include <span>

#include "stats/interval.h"

namespace bakeoff::stats {

struct Spread {
  double sd = 0;  // sqrt(sum d^2 / n); 0 for an empty d
  size_t n = 0;
  // Interval of sd, chi-square on n degrees of freedom (exact for normal d): n sd^2 / quantile. [0, inf]
  // for n = 0.
  Interval interval;
  bool operator==(const Spread&) const = default;
};

// 0 < level < 1.
Spread spread_about_zero(std::span<const double> d, double level = 0.95);

// One-sided p value of "`a` is no closer to zero than `b`": the permutation test of the sum of |d| over a,
// among all ways to divide the pooled |d| into groups of these sizes (all of them if there are at most
// 50,000, else 20,000 drawn with `seed`, plus the data's own). It is exact for d of any shape if a and b
// come from one distribution, where an F test of variances is wrong for heavy tails, and a single spike
// does not dominate it as it does a ratio of variances. 1 if either is empty. The smallest p is 1/choose(na
// + nb, na): 1/20 for 3 and 3, 1/252 for 5 and 5.
double p_narrower(std::span<const double> a, std::span<const double> b, uint64_t seed = 1);

}  // namespace bakeoff::stats
