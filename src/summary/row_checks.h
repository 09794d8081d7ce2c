#pragma once

// The last look at a report's numbers: what a row is about to show must agree with itself, whatever the
// trials behind it said.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "evidence/invariants.h"
#include "summary/summary.h"

namespace bakeoff {

// Of a ranked row: samples/s x time = samples, of a step and of an epoch; its times and sizes are finite and
// not negative; its interval holds its value. `rows`: of the data, 0: not known.
std::optional<Broken> check_row(const Row& row, int64_t batch, int64_t rows);

// By contender: ranked ones on several devices that are more times as fast as on one than they have devices, by the whole
// interval of the ratio.
std::map<std::string, Broken> check_devices(const Summary& summary);

// Moves ranked rows that break a rule to the unranked ones, with the rule and both numbers.
void take_out_broken(Summary& summary, int64_t rows);

}  // namespace bakeoff
