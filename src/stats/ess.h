#pragma once

// How much information a series of steps of *one* process has, and the interval of its mean: for display
// ("98.2 ms +- 0.3") and for scheduling. Never for a verdict: processes differ by far more than steps do,
// and verdicts rest on pair-blocks (stats/e_process.h).

#include <cstddef>
#include <span>

#include "base/result.h"
#include "stats/interval.h"

namespace bakeoff::stats {

inline constexpr double kSmallestEffectiveSize = 10;

struct EffectiveSize {
  double n_eff = 0;
  double phi = 0;  // autocorrelation at lag 1 after the correction, not below 0
  bool operator==(const EffectiveSize&) const = default;
};

// Autocorrelation at lag 1 about the mean; 0 for a constant series.
double lag_one_correlation(std::span<const double> values);

// Effective sample size of an AR(1) series: phi' = phi + (1 + 3 phi)/n, which corrects the bias of the
// sample autocorrelation (Kendall 1954; Marriott & Pope 1954), and n_eff = n (1 - phi')/(1 + phi'). A
// negative phi' counts as 0: alternation is not counted as more evidence than independence. Error if n_eff
// < `smallest`: a series so short, or so correlated, says nothing about its own mean.
Result<EffectiveSize> effective_size(std::span<const double> values,
                                     double smallest = kSmallestEffectiveSize);

struct MeanEstimate {
  double mean = 0;
  double standard_error = 0;
  double n_eff = 0;
  Interval interval;
  bool operator==(const MeanEstimate&) const = default;
};

// Mean, standard error s / sqrt(n_eff), and Student interval on n_eff - 1 degrees of freedom; 0 < level < 1.
// At phi = .8, n = 200 a nominal 95% covers 94%; the same formula with n for n_eff covers 48%.
Result<MeanEstimate> mean_estimate(std::span<const double> values, double level = 0.95);

}  // namespace bakeoff::stats
