// Modes: the best groups of sorted values are contiguous (Fisher, On grouping for maximum homogeneity,
// 1958). With running sums all splits into two cost O(n). Of three, the best begin of the second group moves up with
// its end, so halving the range of ends costs O(n log n): a look at every heat of a race of thousands. The share that
// the best split leaves has no simple distribution under normal noise, so its quantile is simulated once for each number
// of heats. Two and three groups are tried, each at half the chance.
//
// The tests repeat after each heat without a correction. A false sign makes no verdict wrong: it turns the
// backup on, which only widens intervals.

#include "stats/signs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "stats/distributions.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

constexpr size_t kFewest = 6;          // heats, of correlation and slope
constexpr size_t kFewestInAGroup = 2;  // heats
constexpr size_t kMostGroups = 3;
constexpr size_t kLargestTable = 48;  // of more heats, groups leave a larger share still
constexpr int kDraws = 4000;

struct Split {
  double left = 1;               // share of the sum of squares
  size_t first = 0, second = 0;  // where the second and third group begin in ascending order
};

// Sums over ascending values, to have the sum of squares about the mean of any stretch at once.
class Stretches {
 public:
  explicit Stretches(std::span<const double> ascending) {
    const double centre = mean(ascending);
    for (const double value : ascending) {
      sums_.push_back(sums_.back() + (value - centre));
      squares_.push_back(squares_.back() + (value - centre) * (value - centre));
    }
  }
  double spread(size_t from, size_t to) const {
    const double sum = sums_[to] - sums_[from];
    return std::max(0.0, squares_[to] - squares_[from] - sum * sum / static_cast<double>(to - from));
  }

 private:
  std::vector<double> sums_ = {0};
  std::vector<double> squares_ = {0};
};

// The best split of ascending values into this number of groups.
Split best_split(std::span<const double> ascending, size_t groups) {
  const size_t n = ascending.size();
  const Stretches stretches(ascending);
  const double whole = stretches.spread(0, n);
  Split best;
  if (n < groups * kFewestInAGroup || !(whole > 0)) return best;
  const auto consider = [&](double within, size_t first, size_t second) {
    if (within < best.left * whole) best = {within / whole, first, second};
  };
  if (groups == 2) {
    for (size_t i = kFewestInAGroup; i + kFewestInAGroup <= n; ++i)
      consider(stretches.spread(0, i) + stretches.spread(i, n), i, n);
    return best;
  }
  struct Part {  // ends of the second group, and where it may begin
    size_t from, to, low, high;
  };
  std::vector<Part> parts = {
      {2 * kFewestInAGroup, n - kFewestInAGroup, kFewestInAGroup, n - 2 * kFewestInAGroup}};
  while (!parts.empty()) {
    const auto [from, to, low, high] = parts.back();
    parts.pop_back();
    const size_t j = (from + to) / 2;
    size_t begin = low;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = low; i <= std::min(high, j - kFewestInAGroup); ++i) {
      const double within = stretches.spread(0, i) + stretches.spread(i, j);
      if (within < least) least = within, begin = i;
    }
    consider(least + stretches.spread(j, n), begin, j);
    if (from < j) parts.push_back({from, j - 1, low, begin});
    if (j < to) parts.push_back({j + 1, to, begin, high});
  }
  return best;
}

// Below which normal values are left with probability kChanceOfASign by the best split.
double critical_left(size_t n, size_t groups) {
  n = std::min(n, kLargestTable);
  thread_local std::map<std::pair<size_t, size_t>, double> found;
  const auto at = found.find({n, groups});
  if (at != found.end()) return at->second;
  std::mt19937_64 random(1000 * n + groups);
  std::normal_distribution<double> normal;
  std::vector<double> lefts;
  std::vector<double> values(n);
  for (int draw = 0; draw < kDraws; ++draw) {
    for (double& value : values) value = normal(random);
    std::sort(values.begin(), values.end());
    lefts.push_back(best_split(values, groups).left);
  }
  return found[{n, groups}] = quantile(lefts, kChanceOfASign / 2);  // two numbers of groups are tried
}

std::optional<Modes> find_modes(std::span<const double> d) {
  std::vector<double> ascending(d.begin(), d.end());
  std::sort(ascending.begin(), ascending.end());
  for (size_t groups = 2; groups <= kMostGroups; ++groups) {
    if (d.size() < groups * kFewestInAGroup) break;
    const Split split = best_split(ascending, groups);
    if (split.left >= critical_left(d.size(), groups)) continue;
    const std::span<const double> all(ascending);
    const double low = mean(all.first(split.first));
    const double middle = mean(all.subspan(split.first, split.second - split.first));
    double apart = middle - low;
    if (groups == 3) apart = std::min(apart, mean(all.subspan(split.second)) - middle);
    return Modes{d.size(), groups, apart, split.left};
  }
  return std::nullopt;
}

std::optional<Correlation> find_correlation(std::span<const double> d) {
  const auto n = static_cast<double>(d.size());
  if (d.size() < kFewest) return std::nullopt;
  const double centre = mean(d);
  double products = 0, squares = 0;
  for (size_t i = 0; i < d.size(); ++i) {
    squares += (d[i] - centre) * (d[i] - centre);
    if (i > 0) products += (d[i] - centre) * (d[i - 1] - centre);
  }
  if (!(squares > 0)) return std::nullopt;
  const double lag1 = products / squares;
  static const double kZ = normal_quantile(1 - kChanceOfASign);
  if ((lag1 + 1 / n) * n * std::sqrt(n - 1) / (n - 2) < kZ) return std::nullopt;
  return Correlation{d.size(), lag1};
}

std::optional<StealSlope> find_steal_slope(std::span<const double> d,
                                           std::span<const std::optional<double>> steal) {
  std::vector<double> x, y;
  for (size_t i = 0; i < std::min(d.size(), steal.size()); ++i) {
    if (!steal[i]) continue;
    x.push_back(*steal[i]);
    y.push_back(d[i]);
  }
  if (x.size() < kFewest) return std::nullopt;
  const double x_mean = mean(x), y_mean = mean(y);
  double xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    xy += (x[i] - x_mean) * (y[i] - y_mean);
    yy += (y[i] - y_mean) * (y[i] - y_mean);
  }
  if (!(xx > 0) || !(yy > 0)) return std::nullopt;
  const double r = xy / std::sqrt(xx * yy);
  const auto degrees = static_cast<double>(x.size() - 2);
  const double t = std::abs(r) * std::sqrt(degrees / std::max(1e-12, 1 - r * r));
  if (t < student_quantile(degrees, 1 - kChanceOfASign / 2)) return std::nullopt;
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  return StealSlope{x.size(), xy / xx, r, *low, *high};
}

}  // namespace

std::optional<NodeSpread> node_spread(std::span<const double> d, std::span<const int> node) {
  std::map<int, std::vector<double>> by_node;
  for (size_t i = 0; i < std::min(d.size(), node.size()); ++i) by_node[node[i]].push_back(d[i]);
  const auto groups = static_cast<double>(by_node.size()), n = static_cast<double>(d.size());
  if (groups < 2 || n <= groups) return std::nullopt;
  const double centre = mean(d);
  double between = 0, within = 0, squares = 0;
  for (const auto& [name, values] : by_node) {
    const double own = mean(values);
    const auto count = static_cast<double>(values.size());
    between += count * (own - centre) * (own - centre);
    squares += count * count;
    for (const double value : values) within += (value - own) * (value - own);
  }
  const double mean_between = between / (groups - 1), mean_within = within / (n - groups);
  if (!(mean_between > mean_within * fisher_quantile(groups - 1, n - groups, 1 - kChanceOfASign)))
    return std::nullopt;
  // Heats of a machine on average, in the sense of the estimate (Searle, Casella & McCulloch 1992, 3.6).
  const double each = (n - squares / n) / (groups - 1);
  const double variance = (mean_between - mean_within) / each;
  return NodeSpread{d.size(), by_node.size(), std::sqrt(variance), variance / (variance + mean_within)};
}

void Signs::update(const Signs& later) {
  if (later.nodes) nodes = later.nodes;
  if (later.modes) modes = later.modes;
  if (later.correlation) correlation = later.correlation;
  if (later.steal) steal = later.steal;
}

Signs signs_of(std::span<const double> d, std::span<const std::optional<double>> steal) {
  return {.modes = find_modes(d), .correlation = find_correlation(d), .steal = find_steal_slope(d, steal)};
}

}  // namespace bakeoff::stats
