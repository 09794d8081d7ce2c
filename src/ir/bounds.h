#pragma once

// Upper bounds of the integers that the inputs of a workload may hold.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::ir {

// An integer in [0, end), or the label that a loss leaves out.
struct Bound {
  int64_t end = 0;
  std::optional<int64_t> ignored = {};
  Bound(int64_t e, std::optional<int64_t> left_out = {}) : end(e), ignored(left_out) {}
  bool holds(int64_t value) const { return (value >= 0 && value < end) || value == ignored; }
  bool operator==(const Bound&) const = default;
};
// "0..9", "0..9 and -100"
std::string to_text(const Bound& bound);

// Of each element of an input's row: what all nodes allow that read it (labels: classes; ids: rows of the table),
// also behind flatten, reshape, transpose and slice; nothing where no node bounds it.
using RowBounds = std::vector<std::optional<Bound>>;

// By input index; empty for float inputs. The workload must be valid.
std::vector<RowBounds> row_bounds(const Workload& workload);
RowBounds row_bounds(const Workload& workload, ValueId input);

// By input index: the smallest end of its row.
std::vector<std::optional<int64_t>> integer_bounds(const Workload& workload);

// That of one input.
std::optional<int64_t> integer_bound(const Workload& workload, ValueId input);

}  // namespace bakeoff::ir
