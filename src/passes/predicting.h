#pragma once

#include "ir/workload.h"

namespace bakeoff::passes {

// What a workload of several losses, or of a weighted one, needs to predict: its inputs, the nodes and parameters that
// the first loss depends on, and that loss as it is. Likewise one that stops gradients: what does so is left out. Any
// other workload as it is.
ir::Workload predicting(const ir::Workload& workload);

}  // namespace bakeoff::passes
