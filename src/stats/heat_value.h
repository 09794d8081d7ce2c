#pragma once

// The value of one contender in one heat: the estimator on which every verdict rests. Races
// (evidence/heats.h) and the proof by simulation (prove/) call these same functions.
//
// Bursts are short and many, and on most hosts a few of them take several times as long as the others,
// because something else ran. So the slowest quarter is left out. This hides work of the contender itself
// that falls into fewer than a quarter of the bursts ("stalls"): PairTable (stats/pair_table.h) compares the
// stalls of two contenders, and where they differ the plain mean decides between these two.

#include <cstddef>
#include <optional>
#include <span>

namespace bakeoff::stats {

inline constexpr double kTrimmedBursts = 0.25;

// Number of bursts that are left out: floor(bursts / 4), so 0 of fewer than 4.
size_t trimmed_bursts(size_t bursts);

struct HeatMeasure {
  double log_ms = 0;       // log of the mean ms per step of the bursts that are not left out
  double log_mean_ms = 0;  // of all bursts
  // Variance of log_ms that the bursts show: with the bursts left out set to the slowest one that is not
  // (winsorised; Tukey & McLaughlin 1963), their variance / (bursts (1 - share left out)^2), divided by the
  // square of the mean. As if bursts were independent. Empty: fewer than two bursts.
  std::optional<double> variance = {};
  size_t bursts = 0;
  // Logarithm of the factor by which stalls lengthen the mean step, at least 0.
  double stalls() const { return log_mean_ms - log_ms; }
  // `variance` and something for how little so few bursts know of it: the geometric mean of itself and its
  // upper 90% bound by chi-squared.
  std::optional<double> variance_high() const;
  bool operator==(const HeatMeasure&) const = default;
};

// burst_ms: ms per step of each of a process's bursts, only those after warm-up, without steps that do not
// count. Nothing if there is no burst, or a time is not a positive finite number.
std::optional<HeatMeasure> measure_heat(std::span<const double> burst_ms);

// HeatMeasure::log_ms alone.
std::optional<double> heat_value(std::span<const double> burst_ms);

}  // namespace bakeoff::stats
