#include "stats/trimmed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace bakeoff::stats {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double quantile_of_sorted(const std::vector<double>& sorted, double p) {
  const double position = p * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double share = position - static_cast<double>(below);
  return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return kNaN;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double top_trimmed_mean(std::span<const double> values, double fraction) {
  if (values.empty()) return kNaN;
  const size_t wanted = static_cast<size_t>(fraction * static_cast<double>(values.size()) + 1e-9);
  const size_t dropped = std::min(wanted, values.size() - 1);
  if (dropped == 0) return mean(values);
  std::vector<double> kept(values.begin(), values.end());
  const auto end = kept.end() - static_cast<std::ptrdiff_t>(dropped);
  std::nth_element(kept.begin(), end, kept.end());
  kept.erase(end, kept.end());
  std::sort(kept.begin(), kept.end());  // the sum must not depend on the order in which the steps came
  return mean(kept);
}

double quantile(std::span<const double> values, double p) {
  if (values.empty()) return kNaN;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return quantile_of_sorted(sorted, p);
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double robust_sd(std::span<const double> values) {
  if (values.empty()) return kNaN;
  const double centre = median(values);
  std::vector<double> distances(values.size());
  std::transform(values.begin(), values.end(), distances.begin(),
                 [centre](double value) { return std::abs(value - centre); });
  return 1.4826 * median(distances);
}

double residual_sd(std::span<const double> residuals) {
  if (const double sd = robust_sd(residuals); sd > 0) return sd;
  std::vector<double> squares;
  for (const double r : residuals) squares.push_back(r * r);
  return std::sqrt(top_trimmed_mean(squares));
}

std::vector<double> running_medians(std::span<const double> values, size_t reach) {
  std::vector<double> medians(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t begin = i > reach ? i - reach : 0;
    const size_t end = std::min(values.size(), i + reach + 1);
    medians[i] = median(values.subspan(begin, end - begin));
  }
  return medians;
}

double variance(std::span<const double> values) {
  if (values.size() < 2) return kNaN;
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return squares / static_cast<double>(values.size() - 1);
}

Result<double> log_trimmed_mean(std::span<const double> step_ms, double fraction) {
  if (step_ms.empty()) return Error{"no step was timed"};
  for (size_t i = 0; i < step_ms.size(); ++i) {
    if (std::isfinite(step_ms[i]) && step_ms[i] > 0) continue;
    return Error{fmt::format("step {} took {} ms, which is no positive time", i + 1, step_ms[i])};
  }
  return std::log(top_trimmed_mean(step_ms, fraction));
}

Result<double> log_ratio(std::span<const double> a_ms, std::span<const double> b_ms, double fraction) {
  TRY(const double a, log_trimmed_mean(a_ms, fraction));
  TRY(const double b, log_trimmed_mean(b_ms, fraction));
  return a - b;
}

}  // namespace bakeoff::stats
