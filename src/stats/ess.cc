#include "stats/ess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "stats/distributions.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

Interval student_interval(double mean, double standard_error, double degrees, double level) {
  const double half = student_quantile(degrees, (1 + level) / 2) * standard_error;
  return {mean - half, mean + half};
}

}  // namespace

double lag_one_correlation(std::span<const double> values) {
  const double centre = mean(values);
  double squares = 0;
  double products = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - centre) * (values[i] - centre);
    if (i > 0) products += (values[i] - centre) * (values[i - 1] - centre);
  }
  return squares > 0 ? products / squares : 0;
}

Result<EffectiveSize> effective_size(std::span<const double> values, double smallest) {
  const double n = static_cast<double>(values.size());
  if (n < std::max(smallest, 2.0)) {
    return Error{fmt::format("{} steps are fewer than the {} needed", values.size(), smallest)};
  }
  const double phi = lag_one_correlation(values);
  const double corrected = std::max(0.0, phi + (1 + 3 * phi) / n);
  const double n_eff = corrected < 1 ? n * (1 - corrected) / (1 + corrected) : 0;
  if (n_eff < smallest) {
    return Error{
        fmt::format("{} steps of autocorrelation {:.2f} are worth {:.1f} independent ones, fewer than {}",
                    values.size(), corrected, n_eff, smallest)};
  }
  return EffectiveSize{n_eff, corrected};
}

Result<MeanEstimate> mean_estimate(std::span<const double> values, double level) {
  TRY(const EffectiveSize size, effective_size(values));
  const double centre = mean(values);
  const double standard_error = std::sqrt(variance(values) / size.n_eff);
  return MeanEstimate{centre, standard_error, size.n_eff,
                      student_interval(centre, standard_error, size.n_eff - 1, level)};
}

}  // namespace bakeoff::stats
