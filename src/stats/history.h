#pragma once

// A history of one contender's values (one per day, commit or run), and where it may have changed. The
// result is only a nomination: the machine may have changed too, so a nominated change is a verdict only
// after both versions ran again as pairs (stats/e_process.h).
//
//   const CusumTable table(values.size());
//   if (const auto change = nominate(values, table)) rerun(before(change->at), from(change->at));
//
// Max-CUSUM: max over k of |S_k - (k/n) S_n| / sqrt(n v), where S_k is the sum of the first k values and v
// the long-run variance of an AR(1) about a level that may change: the smaller of two estimates, from differences
// (difference_noise() of stats/change_points.h) and from what is left about the means before and after that k. For
// large n this is the largest value of a Brownian bridge. For n = 200 and phi = 0.6, with v estimated, its 99% point
// is much higher. Critical values are therefore simulated, for AR(1) series of the same n and phi with the same
// estimator, and with phi raised by one standard error, 1/sqrt(n).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bakeoff::stats {

// Critical values for series of one length. Simulates some 40,000 series: one or two seconds for n = 200.
class CusumTable {
 public:
  // n >= 8; alpha: probability of a false nomination in one series. The same arguments give the same values.
  explicit CusumTable(size_t n, double alpha = 0.01, uint64_t seed = 1);
  double critical(double phi) const;  // linear between the simulated phi = 0, 0.1 ... 0.9
  size_t length() const { return n_; }

 private:
  size_t n_;
  std::vector<double> critical_;
};

struct CusumPeak {
  double statistic = 0;
  size_t at = 0;   // first index after the change
  double phi = 0;  // as used for the critical value
  bool operator==(const CusumPeak&) const = default;
};
// Statistic 0 for fewer than 8 values and for a constant series.
CusumPeak max_cusum(std::span<const double> values);

// The same values, no further than 3 robust standard deviations from the median of the 7 values around them: single
// slow runs, which every history has, are neither changes of level nor noise that hides one. What lasts fewer than 4
// values is such a spike.
std::vector<double> without_spikes(std::span<const double> values);

struct Nomination {
  size_t at = 0;
  double change = 0;  // mean from `at` on, minus the mean before it
  CusumPeak peak;
  bool operator==(const Nomination&) const = default;
};
// values.size() must equal table.length(). Nothing: no change is significant.
std::optional<Nomination> nominate(std::span<const double> values, const CusumTable& table);

// The critical value at alpha = 1% from simulations made beforehand (cusum_values.cc), between their lengths by
// interpolation in 1/sqrt(n); beyond the longest, 2048, that of the longest, which is a little high.
double cusum_critical(size_t n, double phi);
// The same with that value, for a series of any length; nothing below 8 values.
std::optional<Nomination> nominate(std::span<const double> values);

}  // namespace bakeoff::stats
