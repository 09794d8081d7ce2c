#include "report/density.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bakeoff::report {
namespace {

double bandwidth(const std::vector<double>& ascending, double spacing) {
  const auto n = static_cast<double>(ascending.size());
  const double mean = std::accumulate(ascending.begin(), ascending.end(), 0.0) / n;
  double squares = 0;
  for (const double x : ascending) squares += (x - mean) * (x - mean);
  const double sd = std::sqrt(squares / std::max(n - 1, 1.0));
  const double spread = (quantile(ascending, 0.75) - quantile(ascending, 0.25)) / 1.34;
  const double width = 0.9 * (spread > 0 ? std::min(sd, spread) : sd) * std::pow(n, -0.2);
  return std::max(width, spacing);
}

}  // namespace

double quantile(const std::vector<double>& ascending, double q) {
  if (ascending.empty()) return 0;
  const double place = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, ascending.size() - 1);
  const double share = place - static_cast<double>(below);
  return ascending[below] * (1 - share) + ascending[above] * share;
}

std::vector<double> sorted_finite(const std::vector<double>& values) {
  std::vector<double> out;
  for (const double value : values) {
    if (std::isfinite(value)) out.push_back(value);
  }
  // Millions of steps. A comparison of this file's own: of std::less the linker may take an instance that is not optimised.
  std::sort(out.begin(), out.end(), [](double a, double b) { return a < b; });
  return out;
}

std::vector<double> density(const std::vector<double>& ascending, double low, double high, int points) {
  if (ascending.empty() || points < 2 || !(high > low)) return {};
  const double spacing = (high - low) / (points - 1);
  std::vector<double> bins(points);
  for (const double x : ascending) {
    const double place = (x - low) / spacing;
    if (place >= -0.5 && place < points - 0.5) bins[static_cast<size_t>(place + 0.5)] += 1;
  }
  const double width = bandwidth(ascending, spacing) / spacing;
  std::vector<double> out(points);
  for (int i = 0; i < points; ++i) {
    for (int k = 0; k < points; ++k) {
      const double z = (i - k) / width;
      if (bins[k] > 0 && std::abs(z) < 5) out[i] += bins[k] * std::exp(-0.5 * z * z);
    }
  }
  const double most = *std::max_element(out.begin(), out.end());
  if (most > 0) {
    for (double& value : out) value /= most;
  }
  return out;
}

}  // namespace bakeoff::report
