#include "stats/planning.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stats/distributions.h"

namespace bakeoff::stats {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr double kTooMany = 9.0e18;

int64_t rounded_up(double count) { return count < kTooMany ? static_cast<int64_t>(std::ceil(count)) : kMost; }

}  // namespace

std::optional<int64_t> pairs_needed(double sd, double delta, double alpha, double power) {
  if (delta == 0) return std::nullopt;
  const double z = normal_quantile(1 - alpha / 2) + normal_quantile(power);
  const double ratio = z * sd / delta;
  return rounded_up(ratio * ratio + 5);
}

std::optional<int64_t> steps_per_block(double start_cost, double step_cost, double within_variance,
                                       double between_variance) {
  if (between_variance <= 0) return std::nullopt;
  const double best = std::sqrt(start_cost / step_cost * (within_variance / between_variance));
  return std::max<int64_t>(1, rounded_up(best));
}

std::optional<int64_t> cheaper_from(const RunCost& chaser, const RunCost& rival) {
  const double behind = chaser.startup - rival.startup;
  const double gain = rival.step - chaser.step;
  if (gain < 0) return std::nullopt;
  if (behind < 0) return 0;
  if (gain == 0 || behind / gain >= kTooMany) return std::nullopt;
  double steps = std::floor(behind / gain);  // division may be one off near a whole number: check both ways
  if (steps > 0 && (steps - 1) * gain > behind) --steps;
  if (steps * gain <= behind) ++steps;
  return static_cast<int64_t>(steps);
}

BreakEven break_even(const RunCost& contender, const RunCost& leader) {
  return {cheaper_from(leader, contender), cheaper_from(contender, leader)};
}

}  // namespace bakeoff::stats
