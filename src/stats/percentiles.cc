#include "stats/percentiles.h"

#include <algorithm>
#include <cmath>

#include "stats/distributions.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

// P(B <= k) of B ~ Bin(n, p).
double at_most(int64_t k, int64_t n, double p) {
  if (k < 0) return 0;
  if (k >= n) return 1;
  return binomial_cdf(k, n, p);
}

// The least k in [0, n] with P(B <= k) >= share.
int64_t least_count(int64_t n, double p, double share) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (at_most(middle, n, p) >= share)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// 1 + 2 x the sum of the autocorrelations. Estimates at long lags are noise, so the sum must end somewhere.
// Sums of neighbouring lags, (0, 1), (2, 3), ..., are positive and falling for a reversible Markov chain
// (Geyer). The first that is not positive ends the sum; one that rises is cut to the one before. Lag 0
// counts once, not twice: total starts at -1.
double geyer_sum(const std::vector<double>& centred, double variance) {
  const size_t n = centred.size();
  const auto lag = [&](size_t k) {
    double sum = 0;
    for (size_t i = k; i < n; ++i) sum += centred[i] * centred[i - k];
    return sum / static_cast<double>(n) / variance;
  };
  double total = -1, before = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k + 1 < n / 2; k += 2) {
    const double pair = std::min(lag(k) + lag(k + 1), before);
    if (pair <= 0) break;
    total += 2 * pair;
    before = pair;
  }
  return total;
}

}  // namespace

Ranks quantile_ranks(int64_t n, double p, double level) {
  const double beside = (1 - level) / 2;
  // Low: the largest l with P(B <= l - 1) <= beside. High: the least u with P(B <= u - 1) >= 1 - beside.
  Ranks ranks{least_count(n, p, beside), least_count(n, p, 1 - beside) + 1};
  if (at_most(ranks.low, n, p) <= beside) ++ranks.low;
  return ranks;
}

double effective_count(std::span<const double> series) {
  const double n = static_cast<double>(series.size());
  if (series.size() < 4) return n;
  const double centre = mean(series);
  std::vector<double> centred;
  double squares = 0;
  for (const double value : series) {
    centred.push_back(value - centre);
    squares += centred.back() * centred.back();
  }
  if (!(squares > 0)) return n;
  return std::clamp(n / std::max(1.0, geyer_sum(centred, squares / n)), 1.0, n);
}

Percentile percentile(const std::vector<std::vector<double>>& series, double p, double level) {
  std::vector<double> sorted;
  for (const auto& one : series) sorted.insert(sorted.end(), one.begin(), one.end());
  std::sort(sorted.begin(), sorted.end());
  Percentile found{.p = p, .n = static_cast<int64_t>(sorted.size())};
  const double n = static_cast<double>(found.n);
  // 1e-9: 0.999 x 1000 is a hair above 999.
  const auto at = [&](double rank) { return sorted[static_cast<size_t>(std::clamp(rank, 1.0, n)) - 1]; };
  found.value = at(std::ceil(n * p - 1e-9));
  for (const auto& one : series) {
    std::vector<double> slower;
    for (const double value : one) slower.push_back(value > found.value ? 1 : 0);
    found.n_eff += std::min(effective_count(slower), effective_count(one));
  }
  const auto worth = static_cast<int64_t>(std::max(1.0, std::floor(found.n_eff)));
  const Ranks ranks = quantile_ranks(worth, p, level);
  // Ranks among `worth` independent values, stretched to n and rounded outwards.
  const double scale = n / static_cast<double>(worth);
  if (ranks.low > 0) found.bounds.low = at(std::floor(static_cast<double>(ranks.low) * scale + 1e-9));
  if (ranks.high <= worth) found.bounds.high = at(std::ceil(static_cast<double>(ranks.high) * scale - 1e-9));
  return found;
}

}  // namespace bakeoff::stats
