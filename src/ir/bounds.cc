#include "ir/bounds.h"

#include <algorithm>
#include <cassert>

#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff::ir {
namespace {

// The input of the workload whose elements the integer value `id` holds, reordered perhaps; -1 if they are
// computed.
ValueId source_of(const Workload& workload, ValueId id) {
  while (!workload.is_input(id)) {
    if (workload.producer(id).op == Op::kCast) return -1;
    id = workload.producer(id).inputs[0];
  }
  return id;
}

}  // namespace

std::vector<std::optional<int64_t>> integer_bounds(const Workload& workload) {
  const Result<std::vector<Type>> types = infer(workload);
  assert(types);
  std::vector<std::optional<int64_t>> bounds(workload.inputs.size());
  for (const Node& node : workload.nodes) {
    const OpInfo& row = info(node.op);
    if (row.integer_input < 0 || row.integer_input >= static_cast<int>(node.inputs.size())) continue;
    std::vector<Type> inputs;
    for (const ValueId id : node.inputs) inputs.push_back((*types)[static_cast<size_t>(id)]);
    const ValueId source = source_of(workload, node.inputs[static_cast<size_t>(row.integer_input)]);
    if (source < 0) continue;
    std::optional<int64_t>& bound = bounds[static_cast<size_t>(source)];
    const int64_t own = row.bound(NodeView{node, inputs, workload});
    bound = std::min(bound.value_or(own), own);
  }
  return bounds;
}

std::optional<int64_t> integer_bound(const Workload& workload, ValueId input) {
  return integer_bounds(workload)[static_cast<size_t>(input)];
}

}  // namespace bakeoff::ir
