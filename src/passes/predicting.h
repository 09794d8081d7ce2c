#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff::passes {

// What a workload of several losses, or of a weighted one, needs to predict: its inputs, the nodes and parameters that
// the first loss depends on, and that loss as it is. Likewise one that stops gradients: what does so is left out. Any
// other workload as it is.
ir::Workload predicting(const ir::Workload& workload);

// What it needs to predict these values, which it computes before its losses: several of them joined.
Result<ir::Workload> predicting(const ir::Workload& workload, const std::vector<std::string>& outputs);

}  // namespace bakeoff::passes
