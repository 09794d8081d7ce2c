#include "ir/bounds.h"

#include <algorithm>
#include <cassert>

#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff::ir {
namespace {

// The input of the workload whose elements the integer value `id` holds, reordered perhaps.
ValueId source_of(const Workload& workload, ValueId id) {
  while (!workload.is_input(id)) id = workload.producer(id).inputs[0];
  return id;
}

}  // namespace

std::vector<int64_t> integer_bounds(const Workload& workload) {
  const Result<std::vector<Type>> types = infer(workload);
  assert(types);
  std::vector<int64_t> bounds;
  for (const Input& input : workload.inputs)
    bounds.push_back(input.type.dtype == DType::kI32 ? INT64_MAX : 0);
  for (const Node& node : workload.nodes) {
    const OpInfo& row = info(node.op);
    if (row.integer_input < 0 || row.integer_input >= static_cast<int>(node.inputs.size())) continue;
    std::vector<Type> inputs;
    for (const ValueId id : node.inputs) inputs.push_back((*types)[static_cast<size_t>(id)]);
    const ValueId source = source_of(workload, node.inputs[static_cast<size_t>(row.integer_input)]);
    int64_t& bound = bounds[static_cast<size_t>(source)];
    bound = std::min(bound, row.bound(NodeView{node, inputs, workload}));
  }
  return bounds;
}

std::optional<int64_t> integer_bound(const Workload& workload, ValueId input) {
  const int64_t bound = integer_bounds(workload)[static_cast<size_t>(input)];
  return bound == 0 || bound == INT64_MAX ? std::nullopt : std::optional(bound);
}

}  // namespace bakeoff::ir
