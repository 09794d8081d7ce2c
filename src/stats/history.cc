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

CusumPeak max_cusum(std::span<const double> values) {
  CusumPeak peak;
  const size_t n = values.size();
  if (n < kFewestValues) return peak;
  const Noise noise = difference_noise(values);
  const double count = static_cast<double>(n);
  peak.phi = std::min(0.9, noise.phi + 1 / std::sqrt(count));
  if (noise.variance <= 0) return peak;
  const double centre = mean(values);
  const double scale = std::sqrt(count * noise.long_run_variance());
  double sum = 0;
  for (size_t k = 1; k < n; ++k) {
    sum += values[k - 1] - centre;
    if (std::abs(sum) / scale <= peak.statistic) continue;
    peak.statistic = std::abs(sum) / scale;
    peak.at = k;
  }
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
