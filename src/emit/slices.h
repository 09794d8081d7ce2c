#pragma once

// Slices that a person would write as one statement.
//
//   i, f, g, o = gates.chunk(4, dim=1)   four slices side by side that cover an axis
//   q, k, v = x.unbind(2)                all places of an axis, three at most, each by a slice and the reshape that drops it
//   x = x[:, 0]                          a slice of one place, and the reshape that drops its axis

#include <map>
#include <string>
#include <vector>

#include "emit/blocks.h"
#include "emit/layout.h"
#include "ir/workload.h"

namespace bakeoff::emit {

// "[:, 0]", of the last of three axes or more "[..., 0]".
std::string index_of(int64_t axis, size_t rank, const std::string& what);

struct Split {
  // The last node of each part: a slice, or the reshape behind it. The parts follow one another.
  std::vector<int> nodes = {};
  int64_t axis = 0;                  // canonical
  std::vector<int64_t> widths = {};  // of the parts along the axis
  bool unbinds = false;              // the parts are single places, without the axis
  bool even() const;
  // Where the parts begin, without the first: what numpy's split takes.
  std::vector<int64_t> cuts() const;
};

class Slices {
 public:
  Slices() = default;
  // `plan`: where it is given, slices that are not canonical are left alone. `live`: where it is given, the nodes that are
  // printed, in order.
  Slices(const ir::Workload& workload, const std::vector<ir::Type>& types, const LayoutPlan* plan = nullptr,
         const std::vector<int>* live = nullptr);

  // The split whose first slice this node is; null if there is none, or one that leaves the stretch or enters a block.
  const Split* split_at(int node, const Stretch& stretch, const Blocks& blocks) const;
  // The nodes of the split that this one is a node of; empty: of none.
  std::vector<int> together(int node) const;
  // "[:, 0]" for a slice that the next node, a reshape, completes; else empty.
  std::string select_at(int node, const Stretch& stretch, const Blocks& blocks) const;

 private:
  std::map<int, Split> splits_;
  std::map<int, std::string> selects_;  // by the slice
};

}  // namespace bakeoff::emit
