#pragma once

// Why one script is slower than another, or could be faster: observed, suspected by rules, and confirmed by paired runs.
// No cause is stated without a measurement of its own: a run that confirms it, or the time that is booked to it.

#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "explain/explanation.h"

namespace bakeoff::explain {

Result<Explanation> explain(ExplainJob job, const Progress& progress);

// What differs in the work of two scripts, or in what they compute with.
std::vector<WorkDifference> work_differences(const Subject& first, const Subject& second);
// What differs in the versions of what both import, and in variables that may matter.
std::vector<WorkDifference> environment_differences(const Subject& first, const Subject& second);

// For a terminal of `width` columns. `all`: causes that were not confirmed, too.
std::string to_text(const Explanation& explanation, int width, bool all);
std::string to_json(const Explanation& explanation);

}  // namespace bakeoff::explain
