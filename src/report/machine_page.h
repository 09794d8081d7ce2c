#pragma once

// A machine's record as text for a terminal: its limits, then what else shapes a number; and a comparison of
// two.

#include <string>
#include <vector>

#include "records/machine_report.h"

namespace bakeoff::report {

std::string render_machine(const MachineReport& report, int width);

// What changed, what of it is known to matter first. `before` and `after` name the records.
std::string render_machine_diff(const std::vector<MachineChange>& changes, const std::string& before,
                                const std::string& after, int width);

}  // namespace bakeoff::report
