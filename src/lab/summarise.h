#pragma once

// From a run directory to the finished struct that renderers take. Pure: nothing is measured, nothing outside
// the records is read.

#include <vector>

#include "base/result.h"
#include "lab/machine_report.h"
#include "lab/records.h"
#include "lab/summary.h"

namespace bakeoff::lab {

// `machine`: the limits that the run was made under, or null. A contender of whom a trial breaks a rule
// (lab/invariants.h) is not ranked.
Result<Summary> summarise(const Manifest& manifest, const std::vector<Parity>& parities,
                          const std::vector<Trial>& trials, std::vector<Source> sources,
                          const MachineReport* machine = nullptr);

// Reads everything from the directory, the emitted scripts included.
Result<Summary> summarise(const RunDirectory& directory);

}  // namespace bakeoff::lab
