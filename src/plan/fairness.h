#pragma once

// The fairness diff: a table of what each framework of a recipe does by default.

#include <vector>

#include "ir/training.h"
#include "ir/workload.h"
#include "records/trial.h"

namespace bakeoff {

// One column for each framework (and Keras backend) among the contenders, and the lines that matter for this
// workload and optimizer. `differs` marks lines whose columns are not all equal.
FairnessDiff fairness_diff(const ir::Workload& workload, const ir::Training& training,
                           const std::vector<Contender>& contenders);

}  // namespace bakeoff
