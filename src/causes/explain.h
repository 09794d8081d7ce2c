#pragma once

// Finds why a contender failed the gate: the referee trains in other ways (causes/ways.h). A way that
// reproduces everything known of the contender (prediction, loss, gradients, update, running statistics,
// the losses of all steps and the parameters after them) is the explanation. A way that reproduces only a
// part of it is not.

#include <string>

#include "causes/answer.h"
#include "plan/lane.h"
#include "reference/reference.h"

namespace bakeoff {

// "matches: epsilon inside the root: sqrt(v + eps)"; empty if no way reproduces the answer, or if the
// answer is the recipe's. `unbiased`: the contender declares that its running variances are unbiased.
std::string explain(const GateJob& job, const Reference& reference, const Answer& answer, bool unbiased);

}  // namespace bakeoff
