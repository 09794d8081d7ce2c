#pragma once

// What each trial of a race shows alone: its value, and which contenders are out because of it. Pure
// functions of the records.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "records/trial.h"
#include "stats/heat_value.h"

namespace bakeoff {

// What one heat measured (stats/heat_value.h), from the bursts after warm-up. Nothing for a trial that
// failed, broke a rule, or was dropped.
std::optional<stats::HeatMeasure> measure_heat(const Trial& trial);
// HeatMeasure::log_ms alone: the value of the heat.
std::optional<double> heat_value(const Trial& trial);

// Step times of a contender in ms, one for each of its trials that has a value, in their order.
std::vector<double> heat_times_ms(const std::vector<Trial>& trials, const std::string& contender);

// Contenders that failed or broke a rule in some heat: they are out, and none of their heats counts.
std::set<std::string> failed_in(const std::vector<Trial>& trials);

// Contenders that looked hopeless (stats/racing.h) in at least two heats, each time in a fresh process
// while nothing disturbed the host, and were timed in no heat. The value is the smallest ratio of their
// fastest step to the leader's: 40 means 40 times as long. A single look decides nothing: the process or
// the machine may have been stopped for a moment.
std::map<std::string, double> hopeless(const std::vector<Trial>& trials);

// Contenders of hopeless() and failed_in(), and contenders that never become steady (evidence/warm_up.h): they
// run in no further heat and get no interval. `tolerance`: the recipe's margin.
std::set<std::string> out_of_race(const std::vector<Trial>& trials, double tolerance);

}  // namespace bakeoff
