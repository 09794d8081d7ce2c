#pragma once

// The gate for a whole plan: proofs of earlier runs where they fit, workers for the others.

#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "records/trial.h"
#include "records/watch.h"

namespace bakeoff {

// The gate for all lanes not in `done` yet; appends to the run directory. The referee computes only when some
// contender has to be proven anew.
Result<std::vector<Parity>> gate_all(Plan& plan, std::vector<Parity> done, const Watch& watch);

}  // namespace bakeoff
