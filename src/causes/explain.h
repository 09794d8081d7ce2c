#pragma once

// Why a contender failed the gate: the referee trains in other ways (causes/ways.h). A way that reproduces
// all that was seen of the contender, the prediction, loss, gradients, update, running statistics, the losses
// of all steps and the parameters after them, is the explanation. One that reproduces a part of it is none.

#include <string>

#include "causes/answer.h"
#include "plan/lane.h"
#include "reference/reference.h"

namespace bakeoff {

// "matches: epsilon inside the root: sqrt(v + eps)"; empty where no way reproduces the answer, or where it is
// the recipe's. `unbiased`: the contender's running variances are declared to be the unbiased ones.
std::string explain(const GateJob& job, const Reference& reference, const Answer& answer, bool unbiased);

}  // namespace bakeoff
