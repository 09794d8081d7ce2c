#include "stats/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

// Squared deviations of any stretch from its mean, from running sums of the centred values.
class Cost {
 public:
  explicit Cost(std::span<const double> values)
      : sums_(values.size() + 1, 0.0), squares_(values.size() + 1, 0.0) {
    const double centre = mean(values);
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i] - centre;
      sums_[i + 1] = sums_[i] + value;
      squares_[i + 1] = squares_[i] + value * value;
    }
  }

  double of(size_t begin, size_t end) const {
    const double sum = sums_[end] - sums_[begin];
    return squares_[end] - squares_[begin] - sum * sum / static_cast<double>(end - begin);
  }

 private:
  std::vector<double> sums_;
  std::vector<double> squares_;
};

// Mean square of the differences at this lag, without those beyond kOutlier robust standard deviations.
constexpr double kOutlier = 3;
constexpr double kWithinOutlier = 0.97334;  // E(z^2 | |z| < 3) for normal z

double mean_square_difference(std::span<const double> values, size_t lag) {
  std::vector<double> differences;
  for (size_t i = lag; i < values.size(); ++i) differences.push_back(values[i] - values[i - lag]);
  const double scale = robust_sd(differences);
  double squares = 0;
  double count = 0;
  for (const double d : differences) {
    if (scale > 0 && std::abs(d) > kOutlier * scale) continue;
    squares += d * d;
    ++count;
  }
  return squares / count / (scale > 0 ? kWithinOutlier : 1);
}

}  // namespace

std::vector<size_t> pelt(std::span<const double> values, double penalty, size_t shortest) {
  const size_t n = values.size();
  if (n == 0) return {};
  const Cost cost(values);
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  std::vector<size_t> last(n + 1, 0);
  std::vector<size_t> candidates = {0};
  best[0] = -penalty;
  shortest = std::min(std::max<size_t>(shortest, 1), n);
  for (size_t end = shortest; end <= n; ++end) {
    if (end >= 2 * shortest) candidates.push_back(end - shortest);
    for (const size_t begin : candidates) {
      const double total = best[begin] + cost.of(begin, end) + penalty;
      if (total < best[end]) {
        best[end] = total;
        last[end] = begin;
      }
    }
    // If a segment from `begin` to `turn` is no cheaper than the best solution up to `turn`, a segment that
    // begins at `turn` is at least as good for every later end, and `begin` is dropped. `turn` is the last
    // start that every later end may use, so the minimum stays exact.
    const size_t turn = end + 1 - shortest;
    std::erase_if(candidates, [&](size_t begin) {
      return begin < turn && best[begin] + cost.of(begin, turn) >= best[turn];
    });
  }
  std::vector<size_t> starts;
  for (size_t end = n; end > 0; end = last[end]) starts.push_back(last[end]);
  std::reverse(starts.begin(), starts.end());
  return starts;
}

Noise difference_noise(std::span<const double> values) {
  if (values.size() < 4) return {};
  const double near = mean_square_difference(values, 1);
  const double far = mean_square_difference(values, 2);
  if (near <= 0) return {};
  const double phi = std::clamp(far / near - 1, 0.0, 0.95);
  return {near / (2 * (1 - phi)), phi};
}

}  // namespace bakeoff::stats
