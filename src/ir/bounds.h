#pragma once

// Upper bounds of the integers that the inputs of a workload may hold.

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::ir {

// Of each element of an input's row: it must lie in [0, bound). The smallest bound of the nodes that read it
// (labels: classes; ids: rows of the table), also behind flatten, reshape, transpose and slice; nothing where no
// node bounds it.
using RowBounds = std::vector<std::optional<int64_t>>;

// By input index; empty for float inputs. The workload must be valid.
std::vector<RowBounds> row_bounds(const Workload& workload);
RowBounds row_bounds(const Workload& workload, ValueId input);

// By input index: the smallest of its row.
std::vector<std::optional<int64_t>> integer_bounds(const Workload& workload);

// The bound of one input.
std::optional<int64_t> integer_bound(const Workload& workload, ValueId input);

}  // namespace bakeoff::ir
