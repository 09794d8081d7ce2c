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

// Along one axis: products of kernel and picture that meet a real pixel, of all.
double real_share(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t before, int64_t dilation) {
  int64_t real = 0;
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = o * stride - before + k * dilation;
      real += at >= 0 && at < in ? 1 : 0;
    }
  }
  return static_cast<double>(real) / static_cast<double>(out * kernel);
}

// The share of a node's products that are not known to be 0: padding around pictures, keys that no query may see.
double needed_share(const Node& node, const std::vector<Shape>& inputs, const Shape& output,
                    const Shape& weight) {
  if (is_conv(node.op) || is_conv_transpose(node.op)) {
    const Shape &in = is_conv(node.op) ? inputs[0] : output, &out = is_conv(node.op) ? output : inputs[0];
    double share = 1;
    for (size_t axis = 0; axis + 2 < in.size(); ++axis)
      share *= real_share(in[axis + 2], out[axis + 2], weight[axis + 2], node.integers("stride")[axis],
                          node.integers("pad")[2 * axis], node.integers("dilation")[axis]);
    return share;
  }
  if (node.op != Op::kAttention) return 1;
  if (inputs.size() > 3) return 0;  // how many keys are padding stands in the data
  const int64_t queries = inputs[0][1], keys = inputs[1][1], window = node.integer("window");
  int64_t seen = 0;
  for (int64_t t = 0; t < queries; ++t) {
    const int64_t first = window > 0 ? std::max<int64_t>(0, t + 1 - window) : 0;
    seen += std::max<int64_t>(0, (node.flag("causal") ? std::min(t + 1, keys) : keys) - first);
  }
  return static_cast<double>(seen) / static_cast<double>(queries * keys);
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

Result<double> needed_flops(const Workload& workload, const Training& training) {
  TRY(const std::vector<Type> types, infer(workload));
  TRY(const std::vector<Cost> nodes, node_costs(workload, training.batch));
  double all = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Cost cost = training.predicts() ? nodes[n].forward() : nodes[n];
    if (cost.flops() == 0) continue;
    const Node& node = workload.nodes[n];
    std::vector<Shape> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(types[static_cast<size_t>(input)].shape);
    const ParamId weight = node.param("weight");
    all +=
        static_cast<double>(cost.flops()) *
        needed_share(node, inputs, types[static_cast<size_t>(workload.output_of(static_cast<int>(n)))].shape,
                     weight < 0 ? Shape{} : workload.parameters[static_cast<size_t>(weight)].shape);
  }
  return all;
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
