#pragma once

// The gate for a whole plan: reuses proofs of earlier runs that match, and proves the other contenders.

#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "records/trial.h"
#include "records/watch.h"

namespace bakeoff {

// Proves every lane that is not in `done`; appends the results to the run directory. The referee computes
// only if some contender must be proven.
Result<std::vector<Parity>> gate_all(Plan& plan, std::vector<Parity> done, const Watch& watch);

}  // namespace bakeoff
