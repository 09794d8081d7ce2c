#pragma once

#include "plan/lane.h"
#include "reference/reference.h"
#include "worker/worker.h"

namespace bakeoff {

// In a worker that has imported its framework in float32; builds anew. Adds the check "dropout" to `parity`.
void prove_dropout(Worker& worker, const GateJob& job, const Reference& reference,
                   const GateContender& contender, Parity& parity);

}  // namespace bakeoff
