#include "stats/heat_value.h"

#include "stats/trimmed.h"

namespace bakeoff::stats {

std::optional<double> heat_value(std::span<const double> burst_ms) {
  const Result<double> value = log_trimmed_mean(burst_ms);
  return value ? std::optional<double>(*value) : std::nullopt;
}

}  // namespace bakeoff::stats
