#pragma once

// A history of one contender's values (one a day, a commit, a run): where it may have changed. A nomination
// only: yesterday's machine is not today's, so a nominated change is a verdict only after both versions ran
// again as pairs (stats/e_process.h).
//
//   const CusumTable table(values.size());
//   if (const auto change = nominate(values, table)) rerun(before(change->at), from(change->at));
//
// Max-CUSUM: max over k of |S_k - (k/n) S_n| / sqrt(n v), S_k the sum of the first k values and v the
// long-run variance of an AR(1) about a level that may change (difference_noise() of stats/change_points.h).
// For large n this is the largest value of a Brownian bridge, but for n = 200 and phi = .6, with v estimated,
// its 99% point is far above: so critical values are simulated, for AR(1) series of the same n and phi, with
// the same estimator, and a phi that is put up by one standard error, 1/sqrt(n).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bakeoff::stats {

// Critical values for series of one length. Some 40,000 simulated series: a second or two for n = 200.
class CusumTable {
 public:
  // n >= 8; alpha: of a false nomination in one series. Seeded: the same arguments, the same values.
  explicit CusumTable(size_t n, double alpha = 0.01, uint64_t seed = 1);
  double critical(double phi) const;  // linear between simulated phi = 0, .1 ... .9
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

struct Nomination {
  size_t at = 0;
  double change = 0;  // mean from `at` on less mean before it
  CusumPeak peak;
  bool operator==(const Nomination&) const = default;
};
// values.size() must be table.length(). Nothing: no change stands out.
std::optional<Nomination> nominate(std::span<const double> values, const CusumTable& table);

}  // namespace bakeoff::stats
