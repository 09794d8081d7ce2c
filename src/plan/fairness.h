#pragma once

// The fairness diff: what the frameworks of a recipe do where the user says nothing, side by side.

#include <vector>

#include "ir/training.h"
#include "ir/workload.h"
#include "records/trial.h"

namespace bakeoff {

// One column for each framework (and Keras backend) among the contenders; lines that matter for this workload
// and optimizer. `differs` marks those where the columns do not agree.
FairnessDiff fairness_diff(const ir::Workload& workload, const ir::Training& training,
                           const std::vector<Contender>& contenders);

}  // namespace bakeoff
