#pragma once

// From a run directory to the finished struct that renderers take. Pure: nothing is measured, nothing outside
// the records is read.

#include <vector>

#include "base/result.h"
#include "lab/records.h"
#include "lab/summary.h"

namespace bakeoff::lab {

Result<Summary> summarise(const Manifest& manifest, const std::vector<Parity>& parities,
                          const std::vector<Trial>& trials, std::vector<Source> sources);

// Reads everything from the directory, the emitted scripts included.
Result<Summary> summarise(const RunDirectory& directory);

}  // namespace bakeoff::lab
