#pragma once

// A heat as a value. With the run directory it is all that a process needs to run the heat: this one, another one, or
// one on another machine that has a copy of the directory. What comes back is a value, too.

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "race/heat_plan.h"
#include "records/trial.h"

namespace bakeoff {

struct HeatOrder {
  int number = 0;                    // of the run's heats, from 1
  std::vector<size_t> members = {};  // indices of the plan's lanes
  // Number of members that start at the same time; with 2, start-up times include contention (Trial::alone).
  size_t at_once = 1;
  HeatPlan plan = {};  // its bursts; what the recipe states counts instead
  // Seconds until the budget ends. As many rounds are run as fit, at least kFewestInTime. Left out are members that
  // would start later, or whose warm-up and bursts would end later (two stay), and audits that would.
  double left_s = std::numeric_limits<double>::infinity();
  std::map<size_t, double> start_s = {};  // lanes: seconds that their starts took; absent: not known
  bool bases_first = false;  // contenders with settings start after those without, and are left out first
  bool confirms = false;     // a confirmation heat, which measures the winner again (stats/racing.h)
  // Step time of the leader in seconds. 0 = unknown: use the fastest in this heat. A contender that was
  // never timed and looks hopeless against it (stats/racing.h), by the fastest of its first three steps, is
  // not timed further.
  double leader_step_s = 0;
  std::set<size_t> timed = {};  // lanes that were timed in an earlier heat, or looked at often enough
  // Lanes audited in two earlier heats. They are audited again in confirmation heats, and in others while audits have
  // taken at most a tenth of the race.
  std::set<size_t> audited = {};
  double race_s = 0;    // duration of the heats before
  double audits_s = 0;  // of it for audits
  bool operator==(const HeatOrder&) const = default;
};

struct HeatResult {
  // In the order of the members; the trial of a member that failed has the reason, and one that was left out has none.
  std::vector<Trial> trials = {};
  double audits_s = 0;  // seconds that this heat's audits took
};

// As JSON in one line.
std::string to_json(const HeatOrder& order);
std::string to_json(const HeatResult& result);
// Errors: no such JSON, or values of another kind; `where` names its source.
Result<HeatOrder> heat_order_from_json(std::string_view text, const std::string& where);
Result<HeatResult> heat_result_from_json(std::string_view text, const std::string& where);

}  // namespace bakeoff
