#pragma once

// Which integers a workload may be fed.

#include <cstdint>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::ir {

// By input index: every element must lie in [0, bound). The smallest bound of the nodes that read an integer
// input (labels: classes; ids: rows of the table), also behind flatten, reshape and transpose; 0 for float
// inputs, INT64_MAX for integers that nothing bounds. The workload must be valid.
std::vector<int64_t> integer_bounds(const Workload& workload);

}  // namespace bakeoff::ir
