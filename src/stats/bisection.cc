#include "stats/bisection.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bakeoff::stats {
namespace {

constexpr double kMostOfOneProbe = 5;

// log N(mean; shift, v) - log N(mean; 0, v).
double log_odds(const ProbeSeen& seen, double shift) {
  return shift * (2 * seen.mean - shift) / (2 * seen.variance);
}

}  // namespace

ProbeSeen seen_in(std::span<const PastHeat> heats) {
  assert(!heats.empty());
  const HeatVariance of = heat_variance(heats);
  const auto n = static_cast<double>(heats.size());
  ProbeSeen seen;
  for (const PastHeat& heat : heats) {
    seen.mean += heat.d / n;
    seen.variance += (of.restart + of.round / static_cast<double>(heat.rounds)) / (n * n);
  }
  return seen;
}

bool says_enough(const ProbeSeen& seen, double shift) {
  return std::abs(log_odds(seen, shift)) >= kMostOfOneProbe;
}

Bisection::Bisection(size_t positions, double shift, double sure)
    : shift_(shift), sure_(sure), log_odds_(positions + 1, 0), skipped_(positions + 1, false) {
  assert(positions >= 1 && shift > 0);
}

void Bisection::observe(size_t position, const ProbeSeen& seen) {
  assert(position > 0 && position + 1 < log_odds_.size() && seen.variance > 0);
  log_odds_[position] += std::clamp(log_odds(seen, shift_), -kMostOfOneProbe, kMostOfOneProbe);
}

void Bisection::skip(size_t position) {
  assert(position > 0 && position + 1 < skipped_.size());
  skipped_[position] = true;
}

// log weight of "the first slow version is i": all probes at m >= i count, since version m is slow if i is
// the culprit. A running sum from the end gives all weights. Subtracting the largest keeps exp() finite.
std::vector<double> Bisection::posterior() const {
  const size_t n = log_odds_.size() - 1;
  std::vector<double> weight(n);
  double sum = 0;
  for (size_t i = n; i >= 1; --i) weight[i - 1] = sum += log_odds_[i];
  const double largest = *std::max_element(weight.begin(), weight.end());
  double all = 0;
  for (double& w : weight) all += w = std::exp(w - largest);
  for (double& w : weight) w /= all;
  return weight;
}

std::vector<Bisection::Range> Bisection::ranges() const {
  const std::vector<double> mass = posterior();
  std::vector<Range> all;
  Range range{.first = 1};
  for (size_t i = 1; i <= mass.size(); ++i) {
    range.probability += mass[i - 1];
    if (skipped_[i]) continue;
    range.last = i;
    all.push_back(range);
    range = {.first = i + 1};
  }
  return all;
}

Bisection::Range Bisection::found() const {
  const std::vector<Range> all = ranges();
  return *std::max_element(all.begin(), all.end(),
                           [](const Range& a, const Range& b) { return a.probability < b.probability; });
}

std::optional<size_t> Bisection::next() const {
  const std::vector<Range> all = ranges();
  if (all.size() < 2 || found().probability >= sure_) return std::nullopt;
  std::optional<size_t> best;
  double nearest = 1, mass = 0;
  for (size_t r = 0; r + 1 < all.size(); ++r) {
    mass += all[r].probability;
    if (const double off = std::abs(mass - 0.5); off < nearest) nearest = off, best = all[r].last;
  }
  return best;
}

Status search(Bisection& bisection, const RunProbe& probe, size_t most) {
  for (size_t made = 0; made < most; ++made) {
    const auto at = bisection.next();
    if (!at) return Done{};
    TRY(const Probe result, probe(*at));
    if (result.seen)
      bisection.observe(*at, *result.seen);
    else
      bisection.skip(*at);
  }
  return Done{};
}

}  // namespace bakeoff::stats
