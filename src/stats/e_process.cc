// Evidence is kept as a logarithm: E_n exceeds the range of a double after some 150 heats of an obvious
// gap. In the header's formula ratio = t^2 / nu. It is infinite if the values have no spread; log_part()
// then gives the supremum, (n - 1)/2 log(1 + ng).
//
// The critical ratio of a mixture has no closed form. log_mixture() rises with the ratio, so the root is
// bracketed and found by TOMS 748, in the logarithm of the ratio: the root is large for few heats and near
// 0 for many.

#include "stats/e_process.h"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace bakeoff::stats {
namespace {

double log_part(double n, double g, double ratio) {
  const double shrink = 1 + n * g;
  const double gain = std::isinf(ratio) ? std::log(shrink) : std::log1p(ratio) - std::log1p(ratio / shrink);
  return n / 2 * gain - std::log(shrink) / 2;
}

}  // namespace

double log_mixture(size_t n, double ratio) {
  if (n < 2) return 0;
  std::array<double, kMixture.size()> terms{};
  for (size_t i = 0; i < terms.size(); ++i) {
    terms[i] = std::log(kMixture[i].weight) + log_part(static_cast<double>(n), kMixture[i].g, ratio);
  }
  const double largest = *std::max_element(terms.begin(), terms.end());
  double sum = 0;
  for (const double term : terms) sum += std::exp(term - largest);
  return largest + std::log(sum);
}

namespace {

double solve_critical_ratio(size_t n, double alpha) {
  const double target = -std::log(alpha);
  if (log_mixture(n, kInfinity) <= target) return kInfinity;
  const auto excess = [n, target](double log_ratio) { return log_mixture(n, std::exp(log_ratio)) - target; };
  double low = -1;
  double high = 1;
  while (excess(low) > 0) low *= 2;
  while (excess(high) < 0 && high < 700) high *= 2;
  if (excess(high) < 0) return kInfinity;  // reached only where the target sits at the very supremum
  std::uintmax_t steps = 200;
  const auto [below, above] = boost::math::tools::toms748_solve(
      excess, low, high, boost::math::tools::eps_tolerance<double>(50), steps);
  return std::exp(above);
}

}  // namespace

// A race asks for the same few at every look.
double critical_ratio(size_t n, double alpha) {
  assert(alpha > 0 && alpha < 1);
  thread_local std::map<std::pair<double, size_t>, double> found;
  const auto at = found.find({alpha, n});
  if (at != found.end()) return at->second;
  return found[{alpha, n}] = solve_critical_ratio(n, alpha);
}

double known_variance_half_width(double variance, double prior, double alpha) {
  const double share = variance / (prior * prior);
  return std::sqrt(variance * (1 + share) * (2 * std::log(1 / alpha) + std::log1p(1 / share)));
}

void EProcess::add(double d) {
  assert(std::isfinite(d));
  ++n_;
  const double before = d - mean_;
  mean_ += before / static_cast<double>(n_);
  m2_ += before * (d - mean_);
}

double EProcess::sd() const {
  if (n_ < 2) return std::numeric_limits<double>::quiet_NaN();
  return std::sqrt(m2_ / static_cast<double>(n_ - 1));
}

double EProcess::spread(double resolution) const {
  return std::max(m2_, static_cast<double>(n_) * resolution * resolution);
}

double EProcess::log_e(double mu0, double resolution) const {
  const double gap = static_cast<double>(n_) * (mean_ - mu0) * (mean_ - mu0);
  if (gap == 0) return log_mixture(n_, 0);
  return log_mixture(n_, gap / spread(resolution));
}

Interval EProcess::interval(double alpha, double resolution) const {
  return interval_at(critical_ratio(n_, alpha), resolution);
}

Interval EProcess::interval_at(double ratio, double resolution) const {
  if (n_ < 2 || std::isinf(ratio)) return {};
  const double half = std::sqrt(ratio * (spread(resolution) / static_cast<double>(n_)));
  return {mean_ - half, mean_ + half};
}

}  // namespace bakeoff::stats
