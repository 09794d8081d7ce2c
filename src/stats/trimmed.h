#pragma once

// Location estimates of step times, and the log ratio `d` on which every verdict rests.
//
//   TRY(double d, stats::log_ratio(steps_of_a, steps_of_b));   // d > 0: a is slower
//   double percent = 100 * std::expm1(d);                      // "a takes 3.1% longer"
//
// Step times have a heavy upper tail (interrupts, page faults, other processes) and a hard lower limit, so
// only the top is trimmed. Trimming is per block and by rank alone: it cannot favour a contender by its
// result.

#include <span>
#include <vector>

#include "base/result.h"

namespace bakeoff::stats {

inline constexpr double kTopTrim = 0.10;

// Mean of the values that remain after the floor(fraction * n) largest are dropped; at least one value
// remains. 0 <= fraction < 1. With fewer than 10 values the default drops none: pool the bursts of a block
// first. NaN for an empty series, as in every function below that returns a plain double.
double top_trimmed_mean(std::span<const double> values, double fraction = kTopTrim);

double mean(std::span<const double> values);

// The middle value; the mean of the two middle ones when the count is even.
double median(std::span<const double> values);

// Quantile by linear interpolation between order statistics at (n - 1) * p, 0 <= p <= 1
// (Hyndman & Fan 1996, type 7; the default of R and numpy).
double quantile(std::span<const double> values, double p);

// Median absolute deviation from the median times 1.4826: estimates sigma for normal data, and ignores up
// to half of the values however extreme. 0 if more than half of the values are equal.
double robust_sd(std::span<const double> values);

// The same about 0, for residuals; where more than half of them are 0, as under a coarse clock, the root of the mean
// of their squares without the largest tenth.
double residual_sd(std::span<const double> residuals);

// The median of each value and its `reach` neighbours on either side, as far as there are any.
std::vector<double> running_medians(std::span<const double> values, size_t reach);

// Sample variance with divisor n - 1; NaN below two values.
double variance(std::span<const double> values);

// log of the top-trimmed mean. Error when there is no step, or a time is not a positive finite number.
Result<double> log_trimmed_mean(std::span<const double> step_ms, double fraction = kTopTrim);

// d = log(trimmed mean of a / trimmed mean of b). Any unit of time, the same in both. Errors as above.
Result<double> log_ratio(std::span<const double> a_ms, std::span<const double> b_ms,
                         double fraction = kTopTrim);

}  // namespace bakeoff::stats
