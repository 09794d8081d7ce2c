// When a gate gives up. kTooNoisy needs a half-width, with 0.75 of the sd seen and all heats that the
// budget allows, that exceeds both epsilon (identical versions would stay undecided) and |d - epsilon|
// (these versions would). The factor is there because few heats may overestimate the sd, and stopping
// wrongly costs more than a few heats.

#include "stats/regression.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "stats/boundary.h"
#include "stats/level.h"

namespace bakeoff::stats {
namespace {

constexpr std::array<std::string_view, 3> kChanges = {"UNDECIDED", "REGRESSION", "NO REGRESSION"};
constexpr size_t kFarthestHeat = 5000;  // no outlook goes farther
// Of the standard deviation that few heats show: a machine is only called too noisy if it is so even then.
constexpr double kLuck = 0.75;

// In an outlook the boundary is extrapolated beyond this, as it costs a root each heat there.
constexpr size_t kExact = 61;

double half_width(size_t heats, double level, double sd) {
  const double exact = boundary_half_width(std::min(heats, kExact), level) * sd;
  return heats <= kExact ? exact
                         : exact * std::sqrt(static_cast<double>(kExact) / static_cast<double>(heats));
}

// The fewest heats whose half-width is at most `gap`.
std::optional<size_t> heats_for(double gap, double level, double sd, size_t from) {
  for (size_t n = std::max<size_t>(from, 3); n <= kFarthestHeat; n += std::max<size_t>(1, n / 64))
    if (half_width(n, level, sd) <= gap) return n;
  return std::nullopt;
}

GateOutlook outlook(const RegressionTest& test, std::span<const PastHeat> past, int64_t rounds,
                    const GateTime& time) {
  const HeatVariance variance = heat_variance(past);
  const double sd =
      std::sqrt(variance.restart + variance.round / static_cast<double>(std::max<int64_t>(1, rounds)));
  const double epsilon = std::log1p(test.options().margin);
  const double left_s = std::max(0.0, time.budget_s - time.spent_s);
  const auto further = static_cast<size_t>(time.heat_s > 0 ? std::min(left_s / time.heat_s, 1e6) : 0);
  const size_t last = test.heats() + further;
  GateOutlook all;
  all.reachable_margin = std::expm1(half_width(last, test.level(), sd));
  const double gap = std::abs(test.mean() - epsilon);
  const double at_end = half_width(last, test.level(), kLuck * sd);
  all.too_noisy = at_end > epsilon && at_end > gap;
  if (const auto n = heats_for(gap, test.level(), sd, test.heats() + 1))
    all.decides_s = time.spent_s + static_cast<double>(*n - test.heats()) * time.heat_s;
  return all;
}

}  // namespace

std::string_view name(Change change) { return kChanges[static_cast<size_t>(change)]; }

RegressionTest::RegressionTest(const RegressionOptions& options)
    : options_(options), table_(2, std::log1p(options.margin), Backup::kOnSigns) {
  assert(options.margin > 0 && options.alpha > 0 && options.alpha < 0.5);
}

Status RegressionTest::add(const HeatResult& heat) { return table_.add(heat); }

double RegressionTest::mean() const { return heats() > 0 ? table_.gap(1, 0) : 0; }

double RegressionTest::level() const { return 2 * options_.alpha; }

Interval RegressionTest::interval() const {
  if (heats() == 0) return {};
  return Level(table_, level(), {}).of(1, 0);
}

Change RegressionTest::change() const {
  const Interval d = interval();
  const double epsilon = std::log1p(options_.margin);
  if (d.low > epsilon) return Change::kRegression;
  return d.high < epsilon ? Change::kNone : Change::kUndecided;
}

NextStep next_step(const RegressionTest& test, std::span<const PastHeat> past, int64_t rounds,
                   const GateTime& time) {
  NextStep next{.outlook = outlook(test, past, rounds, time)};
  if (test.change() != Change::kUndecided)
    next.what = NextStep::What::kDecided;
  else if (test.heats() >= kTellingHeats && next.outlook.too_noisy)
    next.what = NextStep::What::kTooNoisy;
  else if (time.spent_s + time.heat_s > time.budget_s)
    next.what = NextStep::What::kNoTime;
  return next;
}

}  // namespace bakeoff::stats
