#pragma once

// From a run directory to the finished struct that renderers take. Pure: nothing is measured, nothing outside
// the records is read.

#include <vector>

#include "base/result.h"
#include "records/machine_report.h"
#include "records/records.h"
#include "summary/summary.h"

namespace bakeoff {

// `machine`: the limits that the run was made under, or null; `peak`: the limits that the run measured for itself,
// or null. A contender with a trial that breaks a rule (evidence/invariants.h) is not ranked.
//
// Times and ratios are one estimate. A ratio is the mean of the log ratios over the heats of the race that
// a contender shared with the leader. The leader's ms is the mean of the logs over the heats that measured
// it again after the decision (all its heats, if there are fewer than two of them), and the ms of every other
// contender is the leader's times the ratio. The interval of ms is that of the row's own heats: Student's t
// at 99%, for display only; no verdict rests on it.
Result<Summary> summarise(const Manifest& manifest, const std::vector<Parity>& parities,
                          const std::vector<Trial>& trials, std::vector<Source> sources,
                          const MachineReport* machine = nullptr, const MachineReport* peak = nullptr);

// Reads everything from the directory, the emitted scripts included.
Result<Summary> summarise(const RunDirectory& directory);

}  // namespace bakeoff
