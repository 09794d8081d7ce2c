#pragma once

// The half-width of a confidence sequence for the mean of d, calibrated to the numbers of heats that races
// have.
//
// The t e-process (stats/e_process.h) rejects at 1/alpha, which by Ville's inequality holds for ever; within
// 10 heats it spends a fifth of alpha. Here the same statistic, ratio = n mean^2 / M2 = t^2 / (n - 1), has a
// critical value of its own at each n, so that under normal d of any one variance
//
//   P(first crossing at heat n) = alpha w_n,   w: .02 at heat 3, .05 at heat 4, .09 at each of 5 to 12,
//                                              .14 over 13 to 60 in proportion to 1 / (n log(n)^2),
//
// and the rest, .07, belongs to the e-process at level .07 alpha from heat 61 on: it never ends. So the
// intervals of all heats hold together with probability 1 - alpha, for whatever reason one stops.
//
// The critical values come from importance sampling: the e-process E_n is the likelihood ratio of its mixture
// against "no gap", so P0(A) = E_mixture[1_A / E_n] for every event A of the first n heats (Siegmund 1976).
// One set of 20,000 paths with a fixed seed serves all levels; a probability of any size is known to about
// 3% at each n, and to less than 1% over all n.
//
//   half-width in sd(d) at alpha = 1%, n     4     5     6     8     12    20    40
//   e-process                                9.6   4.9   3.4   2.2   1.5   1.0   .7
//   here                                     8.0   3.8   2.7   1.8   1.1   1.0   .7
//
// What it costs: there is less slack for d that is not normal (docs/verdicts.md, T1 and T14): light tails and
// modes. Unequal variances, heavy tails and spikes stay below alpha.

#include <cstddef>
#include <span>

namespace bakeoff::stats {

// The critical value of the ratio at n heats, 0 < alpha < 1. Infinite where no ratio is evidence enough, as
// for n < 3. Between the levels alpha = 10^(-k/4) it is interpolated (log of the ratio in log alpha).
double boundary_ratio(size_t n, double alpha);

// The same for 0, 1, ... and at least `most` heats, by index. Valid until the next call in this thread.
std::span<const double> boundary_ratios(size_t most, double alpha);

// The half-width in units of sd(d) (divisor n - 1): sqrt(ratio (n - 1) / n).
double boundary_half_width(size_t n, double alpha);

}  // namespace bakeoff::stats
