// max_cusum() finds the candidate, then estimates the noise. The noise is the hard part. About one mean, a
// change of level looks like noise with a long memory and hides itself. Differences of neighbours do not
// see the change, but with white noise on top of a slow wander they underestimate the correlation.
// Residuals about the means before and after the candidate are good if there is one change. The smaller of
// the two estimates is used. This favours finding changes, as the search for the candidate does. Neither
// bias is corrected: the critical values come from the same function applied to series without a change.

#include "stats/history.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <random>

#include "stats/change_points.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

constexpr size_t kFewestValues = 8;
constexpr int kSimulations = 4000;
constexpr int kGrid = 10;  // phi = 0, .1 ... .9
constexpr size_t kClipReach = 3;
constexpr double kClipSds = 3;

std::vector<double> ar1(size_t n, double phi, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(n);
  double value = normal(random);
  for (double& slot : values) {
    slot = value;
    value = phi * value + std::sqrt(1 - phi * phi) * normal(random);
  }
  return values;
}

}  // namespace

std::vector<double> without_spikes(std::span<const double> values) {
  const std::vector<double> medians = running_medians(values, kClipReach);
  std::vector<double> residuals(values.size());
  std::transform(values.begin(), values.end(), medians.begin(), residuals.begin(), std::minus<>());
  if (residuals.empty()) return residuals;
  const double most = kClipSds * residual_sd(residuals);
  for (size_t i = 0; i < residuals.size(); ++i)
    residuals[i] = medians[i] + std::clamp(residuals[i], -most, most);
  return residuals;
}

namespace {

// Where the sum of the values' distances from their mean is furthest from 0, and how far.
CusumPeak furthest(std::span<const double> values) {
  CusumPeak peak;
  const double centre = mean(values);
  double sum = 0;
  for (size_t k = 1; k < values.size(); ++k) {
    sum += values[k - 1] - centre;
    if (std::abs(sum) <= peak.statistic) continue;
    peak.statistic = std::abs(sum);
    peak.at = k;
  }
  return peak;
}

// An AR(1) model of the values about their means before and from `at` on: of one change of level it is the better
// estimate, of several the differences (change_points.h) are. The autocorrelation's bias, (2 + 4 phi)/n for two
// means, is taken off (Kendall 1954).
Noise noise_about(std::span<const double> values, size_t at) {
  const double n = static_cast<double>(values.size());
  const double before = mean(values.first(at)), after = mean(values.subspan(at));
  double squares = 0, products = 0, last = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double residual = values[i] - (i < at ? before : after);
    squares += residual * residual;
    products += i > 0 && i != at ? residual * last : 0;
    last = residual;
  }
  if (squares <= 0) return {};
  const double phi = (products / squares + 2 / n) / (1 - 4 / n);
  return {squares / (n - 2), std::clamp(phi, 0.0, 0.95)};
}

}  // namespace

CusumPeak max_cusum(std::span<const double> values) {
  const size_t n = values.size();
  if (n < kFewestValues) return {};
  Noise noise = difference_noise(values);
  if (noise.variance <= 0) return {};
  CusumPeak peak = furthest(values);
  if (peak.at == 0) return {};
  const Noise about = noise_about(values, peak.at);
  if (about.variance > 0 && about.long_run_variance() < noise.long_run_variance()) noise = about;
  const double count = static_cast<double>(n);
  peak.phi = std::min(0.9, noise.phi + 1 / std::sqrt(count));
  peak.statistic /= std::sqrt(count * noise.long_run_variance());
  return peak;
}

CusumTable::CusumTable(size_t n, double alpha, uint64_t seed) : n_(n) {
  assert(n >= kFewestValues);
  std::mt19937_64 random(seed);
  for (int step = 0; step < kGrid; ++step) {
    std::vector<double> statistics(kSimulations);
    for (double& value : statistics) value = max_cusum(ar1(n, 0.1 * step, random)).statistic;
    critical_.push_back(quantile(statistics, 1 - alpha));
  }
}

double CusumTable::critical(double phi) const {
  const double place = std::clamp(phi * 10, 0.0, static_cast<double>(kGrid - 1));
  const size_t low = std::min<size_t>(static_cast<size_t>(place), kGrid - 2);
  const double part = place - static_cast<double>(low);
  return critical_[low] * (1 - part) + critical_[low + 1] * part;
}

namespace {

std::optional<Nomination> nomination(std::span<const double> values, const CusumPeak& peak, double critical) {
  if (peak.statistic <= critical) return std::nullopt;
  return Nomination{
      .at = peak.at, .change = mean(values.subspan(peak.at)) - mean(values.first(peak.at)), .peak = peak};
}

}  // namespace

std::optional<Nomination> nominate(std::span<const double> values, const CusumTable& table) {
  assert(values.size() == table.length());
  const CusumPeak peak = max_cusum(values);
  return nomination(values, peak, table.critical(peak.phi));
}

std::optional<Nomination> nominate(std::span<const double> values) {
  if (values.size() < kFewestValues) return std::nullopt;
  const CusumPeak peak = max_cusum(values);
  return nomination(values, peak, cusum_critical(values.size(), peak.phi));
}

}  // namespace bakeoff::stats
