#include "stats/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "stats/distributions.h"

namespace bakeoff::stats {
namespace {

constexpr double kMostEnumerated = 50000;
constexpr int kDraws = 20000;

// Counts the ways to choose `left` more of pooled[at..] whose sum, on top of `sum`, is at most `limit`.
// That enumerates all divisions of the pooled |d| into two groups without storing any.
struct Dealing {
  const std::vector<double>& pooled;
  double limit;
  int64_t all = 0, at_most = 0;

  void choose(size_t at, size_t left, double sum) {
    if (left == 0) {
      ++all;
      at_most += sum <= limit ? 1 : 0;
      return;
    }
    for (size_t i = at; i + left <= pooled.size(); ++i) choose(i + 1, left - 1, sum + pooled[i]);
  }
};

}  // namespace

Spread spread_about_zero(std::span<const double> d, double level) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (d.empty()) return {0, 0, {0, kInf}};
  const double n = static_cast<double>(d.size());
  const double squares = std::inner_product(d.begin(), d.end(), d.begin(), 0.0);
  const double tail = (1 - level) / 2;
  return {std::sqrt(squares / n),
          d.size(),
          {std::sqrt(squares / chi_squared_quantile(n, 1 - tail)),
           std::sqrt(squares / chi_squared_quantile(n, tail))}};
}

double p_narrower(std::span<const double> a, std::span<const double> b, uint64_t seed) {
  if (a.empty() || b.empty()) return 1;
  std::vector<double> pooled;
  for (const double d : a) pooled.push_back(std::abs(d));
  const double observed = std::accumulate(pooled.begin(), pooled.end(), 0.0);
  for (const double d : b) pooled.push_back(std::abs(d));
  const double limit = observed * (1 + 1e-12);  // sums of one dealing in another order
  const auto total = static_cast<unsigned>(pooled.size());
  if (total <= 60 && binomial_coefficient(total, static_cast<unsigned>(a.size())) <= kMostEnumerated) {
    Dealing dealing{pooled, limit};
    dealing.choose(0, a.size(), 0);
    return static_cast<double>(dealing.at_most) / static_cast<double>(dealing.all);
  }
  std::mt19937_64 random(seed);
  int at_most = 1;  // the data's own
  for (int draw = 0; draw < kDraws; ++draw) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) {  // the first |a| places of a Fisher-Yates shuffle
      const size_t j = i + random() % (pooled.size() - i);
      std::swap(pooled[i], pooled[j]);
      sum += pooled[i];
    }
    at_most += sum <= limit ? 1 : 0;
  }
  return static_cast<double>(at_most) / (kDraws + 1);
}

}  // namespace bakeoff::stats
