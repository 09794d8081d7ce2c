#include "ir/cost.h"

#include <algorithm>

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

// One cost for each node, without the optimizer.
Result<std::vector<Cost>> node_costs(const Workload& workload, int64_t batch) {
  TRY(const std::vector<Type> types, infer(workload));
  std::vector<Cost> costs(workload.nodes.size());
  std::vector<bool> needs_gradient(types.size(), false);
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    const Node& node = workload.nodes[n];
    Cost& cost = costs[n];
    const size_t id = static_cast<size_t>(workload.output_of(static_cast<int>(n)));
    std::vector<Type> inputs;
    bool upstream = false;
    for (const ValueId input : node.inputs) {
      Type type = types[static_cast<size_t>(input)];
      inputs.push_back(type);
      upstream = upstream || needs_gradient[static_cast<size_t>(input)];
    }
    int64_t param_bytes = 0, trained_bytes = 0;
    bool weight = false;  // trained is more than a bias, whose gradient is a sum
    for (const Slot& slot : node.params) {
      const Parameter& p = workload.parameters[static_cast<size_t>(slot.param)];
      const int64_t bytes = kFloat * elements(p.shape);
      param_bytes += bytes;
      if (!p.frozen) trained_bytes += bytes;
      weight = weight || (trainable(p) && p.role != Role::kBias);
    }
    const bool trained = std::any_of(node.params.begin(), node.params.end(), [&](const Slot& slot) {
      return trainable(workload.parameters[static_cast<size_t>(slot.param)]);
    });
    needs_gradient[id] = upstream || trained;
    const OpInfo& row = info(node.op);
    if (row.macs != nullptr) {
      const int64_t flops = 2 * batch * row.macs(NodeView{node, inputs, workload}, types[id]);
      cost.flops_forward = flops;
      // A product of two inputs (attention) has a gradient for each of them, weights have one of their own.
      if (upstream) cost.flops_backward += node.params.empty() ? 2 * flops : flops;
      if (weight) cost.flops_backward += flops;
    }
    for (Type& type : inputs) type.shape = with_batch(type.shape, batch);
    const int64_t in = traffic(inputs);
    const int64_t out = kFloat * elements(types[id].shape, batch);
    cost.bytes_forward = in + param_bytes + out;
    if (needs_gradient[id])
      cost.bytes_backward = out + in + param_bytes + trained_bytes + (upstream ? in : 0);
  }
  return costs;
}

void add(Cost& sum, const Cost& more) {
  sum.flops_forward += more.flops_forward;
  sum.flops_backward += more.flops_backward;
  sum.bytes_forward += more.bytes_forward;
  sum.bytes_backward += more.bytes_backward;
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
  TRY(const std::vector<Cost> nodes, node_costs(workload, batch));
  Cost cost;
  for (const Cost& node : nodes) add(cost, node);
  cost.bytes_optimizer = optimizer_bytes_per_scalar(optimizer) * workload.parameter_count();
  return cost;
}

Result<Cost> step_cost(const Workload& workload, const Training& training) {
  TRY(const Cost cost, step_cost(workload, training.optimizer, training.batch));
  return training.predicts() ? cost.forward() : cost;
}

Result<std::vector<OpCost>> cost_by_op(const Workload& workload, int64_t batch) {
  TRY(const std::vector<Cost> nodes, node_costs(workload, batch));
  std::vector<OpCost> kinds;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Op op = workload.nodes[n].op;
    auto at = std::find_if(kinds.begin(), kinds.end(), [&](const OpCost& kind) { return kind.op == op; });
    if (at == kinds.end()) at = kinds.insert(kinds.end(), OpCost{op, {}});
    add(at->cost, nodes[n]);
  }
  return kinds;
}

}  // namespace bakeoff::ir
