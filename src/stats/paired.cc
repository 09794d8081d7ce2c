#include "stats/paired.h"

#include <cmath>
#include <random>

namespace bakeoff::stats {
namespace {

constexpr size_t kAll = 20;
constexpr int kDrawnSigns = 100'000;

}  // namespace

double p_above_zero(std::span<const double> d, uint64_t seed) {
  if (d.empty()) return 1;
  double observed = 0, size = 0;
  for (const double one : d) observed += one, size += std::abs(one);
  const double least = observed - 1e-12 * size;  // the order of summing must not matter
  const size_t n = d.size();
  uint64_t reached = 0;
  const auto sum_of = [&](auto positive) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += positive(i) ? std::abs(d[i]) : -std::abs(d[i]);
    return sum;
  };
  if (n <= kAll) {
    const uint64_t choices = uint64_t{1} << n;
    for (uint64_t signs = 0; signs < choices; ++signs)
      reached += sum_of([&](size_t i) { return (signs >> i & 1) != 0; }) >= least;
    return static_cast<double>(reached) / static_cast<double>(choices);
  }
  std::mt19937_64 random(seed);
  for (int k = 0; k < kDrawnSigns; ++k)
    reached += sum_of([&](size_t) { return (random() >> 63) != 0; }) >= least;
  return static_cast<double>(reached + 1) / (kDrawnSigns + 1);
}

}  // namespace bakeoff::stats
