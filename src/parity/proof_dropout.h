#pragma once

#include "plan/lane.h"
#include "reference/reference.h"
#include "worker/worker.h"

namespace bakeoff {

// Proof 4 in a worker that has imported its framework in float32; it builds again. Adds the check "dropout"
// to `parity`.
void prove_dropout(Worker& worker, const GateJob& job, const Reference& reference,
                   const ContenderStart& contender, Parity& parity);

}  // namespace bakeoff
