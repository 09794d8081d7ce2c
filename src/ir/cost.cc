#include "ir/cost.h"

#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff::ir {
namespace {

constexpr int64_t kFloat = 4;

int64_t traffic(const std::vector<Type>& types) {
  int64_t bytes = 0;
  for (const Type& type : types) bytes += kFloat * elements(type.shape);
  return bytes;
}

}  // namespace

int64_t optimizer_bytes_per_scalar(const Optimizer& optimizer) {
  // Parameter read and written, gradient read; each state read and written.
  int64_t states = optimizer.momentum != 0 ? 1 : 0;
  if (optimizer.kind == OptimizerKind::kRmsprop) states += 1;
  if (optimizer.kind == OptimizerKind::kAdam || optimizer.kind == OptimizerKind::kAdamW) states = 2;
  return 3 * kFloat + states * 2 * kFloat;
}

Result<Cost> step_cost(const Workload& workload, const Optimizer& optimizer, int64_t batch) {
  TRY(const std::vector<Type> types, infer(workload));
  Cost cost;
  std::vector<bool> needs_gradient(types.size(), false);
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    const Node& node = workload.nodes[n];
    const size_t id = static_cast<size_t>(workload.output_of(static_cast<int>(n)));
    std::vector<Type> inputs;
    bool upstream = false;
    for (const ValueId input : node.inputs) {
      Type type = types[static_cast<size_t>(input)];
      inputs.push_back(type);
      upstream = upstream || needs_gradient[static_cast<size_t>(input)];
    }
    int64_t param_bytes = 0;
    for (const Slot& slot : node.params) {
      param_bytes += kFloat * elements(workload.parameters[static_cast<size_t>(slot.param)].shape);
    }
    needs_gradient[id] = upstream || !node.params.empty();
    const OpInfo& row = info(node.op);
    if (row.macs != nullptr) {
      const int64_t flops = 2 * batch * row.macs(NodeView{node, inputs, workload}, types[id]);
      cost.flops_forward += flops;
      // A product of two inputs (attention) has a gradient for each of them, weights have one of their own.
      if (upstream) cost.flops_backward += node.params.empty() ? 2 * flops : flops;
      if (!node.params.empty()) cost.flops_backward += flops;
    }
    for (Type& type : inputs) type.shape = with_batch(type.shape, batch);
    const int64_t in = traffic(inputs);
    const int64_t out = kFloat * elements(types[id].shape, batch);
    cost.bytes_forward += in + param_bytes + out;
    if (needs_gradient[id]) cost.bytes_backward += out + in + 2 * param_bytes + (upstream ? in : 0);
  }
  cost.bytes_optimizer = optimizer_bytes_per_scalar(optimizer) * workload.parameter_count();
  return cost;
}

}  // namespace bakeoff::ir
