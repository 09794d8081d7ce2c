#include "stats/heat_value.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stats/distributions.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {

size_t trimmed_bursts(size_t bursts) {
  return static_cast<size_t>(std::floor(kTrimmedBursts * static_cast<double>(bursts)));
}

std::optional<HeatMeasure> measure_heat(std::span<const double> burst_ms) {
  const bool sound =
      std::all_of(burst_ms.begin(), burst_ms.end(), [](double ms) { return ms > 0 && std::isfinite(ms); });
  if (burst_ms.empty() || !sound) return std::nullopt;
  std::vector<double> ascending(burst_ms.begin(), burst_ms.end());
  std::sort(ascending.begin(), ascending.end());
  const size_t kept = ascending.size() - trimmed_bursts(ascending.size());
  const double trimmed = mean(std::span<const double>(ascending).first(kept));
  HeatMeasure measure = {
      .log_ms = std::log(trimmed), .log_mean_ms = std::log(mean(ascending)), .bursts = ascending.size()};
  if (ascending.size() < 2) return measure;
  std::fill(ascending.begin() + static_cast<std::ptrdiff_t>(kept), ascending.end(), ascending[kept - 1]);
  const auto bursts = static_cast<double>(ascending.size());
  const double share = static_cast<double>(kept) / bursts;
  measure.variance = variance(ascending) / (bursts * share * share * trimmed * trimmed);
  return measure;
}

std::optional<double> HeatMeasure::variance_high() const {
  if (!variance) return std::nullopt;
  const auto degrees = static_cast<double>(bursts - 1);
  return *variance * std::sqrt(degrees / chi_squared_quantile(degrees, 0.1));
}

std::optional<double> heat_value(std::span<const double> burst_ms) {
  const std::optional<HeatMeasure> measure = measure_heat(burst_ms);
  return measure ? std::optional<double>(measure->log_ms) : std::nullopt;
}

}  // namespace bakeoff::stats
