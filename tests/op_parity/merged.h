#pragma once

// Many workloads in one: where each would have to be compiled by itself, that would take minutes.

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff {

using NamedWorkload = std::pair<std::string, ir::Workload>;

// Computes all parts side by side: inputs and parameters have the part's name before theirs ("relu_0_x",
// "relu_0.pre.weight"), and one mse compares all predictions, joined along axis 1, with one target. A part is
// of the kind of zoo::random_case: its loss is mse of N,K with an input that nothing else reads. 2 to 64
// parts.
Result<ir::Workload> merged(const std::string& name, const std::vector<NamedWorkload>& parts);

}  // namespace bakeoff
