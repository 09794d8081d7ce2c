// How the critical values are found. At alpha = 0.01% the boundary of heat 3 may be crossed by one path in
// 500,000 under "no gap". Plain simulation would need millions of paths. draw_paths() therefore draws from
// the mixture of the e-process, where crossings are common, and each path counts 1 / E_n (importance
// sampling). calibrate() walks over the heats:
//
//   At heat n take the uncrossed path with the largest ratio. It costs 1 / E_n(ratio) / kPaths. If the budget
//   alpha * spent_up_to(n) still covers that, pay, make its ratio the critical one, and take the next.
//
// A path that has crossed is removed, so each heat pays for first crossings only. Unspent budget stays for
// later heats.
//
// The paths do not depend on alpha: they are drawn once (30 ms, 5 MB). Each level then costs 6 ms. A race
// needs many levels, because alpha is shared among its pairs; column() computes four per decade, and
// find_boundary_ratio() interpolates.

#include "stats/boundary.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "stats/distributions.h"
#include "stats/e_process.h"
#include "stats/interval.h"

namespace bakeoff::stats {
namespace {

constexpr size_t kFirst = 3, kLast = 60;  // heats with critical values of their own
constexpr size_t kPaths = 20000;
constexpr double kLater = 0.07;  // share of alpha from heat kLast + 1 on

using Shares = std::array<double, kLast + 1>;

// Share of alpha that is spent up to heat n.
const Shares& spent_up_to() {
  static const Shares kShares = [] {
    Shares shares{};
    shares[3] = 0.02;
    shares[4] = 0.05;
    for (size_t n = 5; n <= 12; ++n) shares[n] = 0.09;
    double rest = 0;
    const auto tail = [](size_t n) {
      const auto heats = static_cast<double>(n);
      return 1 / (heats * std::log(heats) * std::log(heats));
    };
    for (size_t n = 13; n <= kLast; ++n) rest += tail(n);
    for (size_t n = 13; n <= kLast; ++n) shares[n] = (1 - kLater - 0.79) * tail(n) / rest;
    for (size_t n = 1; n <= kLast; ++n) shares[n] += shares[n - 1];
    return shares;
  }();
  return kShares;
}

// ratio[n][path] of d drawn from the mixture of the e-process: effects of sd sqrt(g) in units of sd(d),
// taken at equal steps of probability, so that only the noise is random. The ratio does not depend on the
// unit of d.
std::vector<std::vector<float>> draw_paths() {
  std::vector<std::vector<float>> ratios(kLast + 1);
  for (size_t n = kFirst; n <= kLast; ++n) ratios[n].reserve(kPaths);
  std::mt19937_64 random(20261123);
  std::normal_distribution<double> normal;
  for (const MixturePart& part : kMixture) {
    const auto paths = static_cast<size_t>(std::llround(part.weight * static_cast<double>(kPaths)));
    for (size_t path = 0; path < paths; ++path) {
      const double place = (static_cast<double>(path) + 0.5) / static_cast<double>(paths);
      const double effect = std::sqrt(part.g) * normal_quantile(place);
      double mean = 0, squares = 0;
      for (size_t n = 1; n <= kLast; ++n) {
        const auto heats = static_cast<double>(n);
        const double before = effect + normal(random) - mean;
        mean += before / heats;
        squares += before * before * (heats - 1) / heats;
        if (n >= kFirst) ratios[n].push_back(static_cast<float>(heats * mean * mean / squares));
      }
    }
  }
  return ratios;
}

using Column = std::array<double, kLast + 1>;  // critical ratio by number of heats

// From the largest ratio down, as many paths cross at heat n as alpha allows; they are gone at later heats.
Column calibrate(double alpha) {
  static const std::vector<std::vector<float>> kRatios = draw_paths();
  Column critical;
  critical.fill(kInfinity);
  std::vector<uint32_t> alive(kRatios[kFirst].size());
  for (uint32_t path = 0; path < alive.size(); ++path) alive[path] = path;
  double spent = 0;
  for (size_t n = kFirst; n <= kLast; ++n) {
    const std::vector<float>& ratio = kRatios[n];
    const auto smaller = [&ratio](uint32_t a, uint32_t b) { return ratio[a] < ratio[b]; };
    const double allowed = alpha * spent_up_to()[n];
    std::make_heap(alive.begin(), alive.end(), smaller);
    while (!alive.empty()) {
      const double largest = ratio[alive.front()];
      const double cost = std::exp(-log_mixture(n, largest)) / static_cast<double>(kPaths);
      if (spent + cost > allowed) break;
      spent += cost;
      critical[n] = largest;
      std::pop_heap(alive.begin(), alive.end(), smaller);
      alive.pop_back();
    }
  }
  return critical;
}

constexpr double kColumnsADecade = 4;

const Column& column(int number) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<Column>> columns;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Column>& found = columns[number];
  if (!found) found = std::make_unique<Column>(calibrate(std::pow(10, -number / kColumnsADecade)));
  return *found;
}

double find_boundary_ratio(size_t n, double alpha) {
  if (n < kFirst) return kInfinity;
  if (n > kLast) return critical_ratio(n, kLater * alpha);
  const double place = -kColumnsADecade * std::log10(alpha);
  const double whole = std::floor(place + 1e-9);
  const double rest = std::max(0.0, place - whole);
  const double above = column(static_cast<int>(whole))[n];
  if (rest < 1e-6) return above;
  const double below = column(static_cast<int>(whole) + 1)[n];
  return std::exp((1 - rest) * std::log(above) + rest * std::log(below));
}

}  // namespace

// A race asks for the same few at every look.
std::span<const double> boundary_ratios(size_t most, double alpha) {
  assert(alpha > 0 && alpha < 1);
  thread_local std::map<double, std::vector<double>> found;
  std::vector<double>& ratios = found[alpha];
  while (ratios.size() <= most) ratios.push_back(find_boundary_ratio(ratios.size(), alpha));
  return ratios;
}

double boundary_ratio(size_t n, double alpha) { return boundary_ratios(n, alpha)[n]; }

double boundary_half_width(size_t n, double alpha) {
  if (n < kFirst) return kInfinity;
  const auto heats = static_cast<double>(n);
  return std::sqrt(boundary_ratio(n, alpha) * (heats - 1) / heats);
}

}  // namespace bakeoff::stats
