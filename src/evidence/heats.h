#pragma once

// What each trial of a race says by itself: its value, and who is out for it. Pure functions of the records.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

// One heat's evidence: stats/heat_value.h of the bursts after warm-up. Nothing for a trial that failed, broke
// a rule, or was dropped.
std::optional<double> heat_value(const Trial& trial);

// ms a step of a contender, one for each of its trials that has a value, in their order.
std::vector<double> heat_times_ms(const std::vector<Trial>& trials, const std::string& contender);

// Contenders that failed, or broke a rule, in some heat: they are out, and none of their heats counts.
std::set<std::string> failed_in(const std::vector<Trial>& trials);

// Contenders that looked hopeless (stats/racing.h) in two heats at least, each in a fresh process and while
// nothing disturbed the host, and were timed in none; with the least that they were seen behind the leader,
// 40: their fastest step took 40 times as long. One look decides nothing: a process or the machine may have
// stood still.
std::map<std::string, double> hopeless(const std::vector<Trial>& trials);

// These, those that never become steady (evidence/warm_up.h), and those that failed: in no further heat, and
// without an interval. `tolerance`: the recipe's margin.
std::set<std::string> out_of_race(const std::vector<Trial>& trials, double tolerance);

}  // namespace bakeoff
