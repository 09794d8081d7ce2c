#pragma once

// The bursts of the next heat, planned from heats that are over (stats/burst_plan.h), so that a running heat is
// never changed by what it shows. A race that was killed continues with the same plan: all of it follows from
// the records.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "records/trial.h"
#include "stats/burst_plan.h"
#include "stats/racing.h"

namespace bakeoff {

// A burst is at least this long, in seconds: a worker that claims up to 2 ms too little per burst is not noticed
// (Burst::counted_ns of records/trial.h), and the nudge of an audit takes up to 2 ms. Of this that is 1%.
inline constexpr double kShortestAudited = 0.2;
inline constexpr double kUsualBurst = 0.3;  // seconds, until the first heat has shown more

// Fewest bursts in a heat of a member that is far behind.
inline constexpr int64_t kBurstsFarBehind = 4;

struct HeatPlan {
  int64_t rounds = 16;           // one burst of each member, or of all but those with long steps
  double burst_s = kUsualBurst;  // duration of the steps of a burst that count
  // Members, by position, that earlier heats saw behind the leader by more than stats::kWideGap. They have a burst
  // in every second round only: half as many decide so wide a gap.
  std::set<size_t> far_behind = {};
  bool operator==(const HeatPlan&) const = default;
};

// Where the recipe states the bursts, they are as it says.
HeatPlan with_stated(HeatPlan plan, const recipe::Race& race);

// What a heat of `members` costs, by the heats in which they took part; nothing if one never did.
std::optional<stats::HeatCost> heat_cost(const std::vector<Trial>& trials,
                                         const std::vector<std::string>& members);

// Seconds that another heat takes, of `members`, if it is like the last one that was recorded. 0: none was, or none
// with its duration.
double expected_heat_s(const std::vector<Trial>& trials, const std::vector<std::string>& members);

// What heat_cost() counts of a trial: its start, its warm-up and its bursts, in seconds.
double counted_seconds(const Trial& trial);

// The heats of two contenders in which both were timed; d = log(a / b).
std::vector<stats::PastHeat> past_heats(const std::vector<Trial>& trials, const std::string& a,
                                        const std::string& b);

// `contenders`: ids of the race's group, of which `next.members` are positions. `alpha`: of one comparison.
HeatPlan plan_heat(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                   const std::vector<std::string>& contenders, const stats::Race& race,
                   const stats::Heat& next, double alpha);

}  // namespace bakeoff
