#pragma once

// Upper bounds of the integers that the inputs of a workload may hold.

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::ir {

// By input index: every element must lie in [0, bound). The smallest bound of the nodes that read an integer
// input (labels: classes; ids: rows of the table), also behind flatten, reshape and transpose; nothing for
// float inputs and for integers that no node bounds. The workload must be valid.
std::vector<std::optional<int64_t>> integer_bounds(const Workload& workload);

// The bound of one input.
std::optional<int64_t> integer_bound(const Workload& workload, ValueId input);

}  // namespace bakeoff::ir
