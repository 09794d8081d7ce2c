#include "ir/cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff::ir {
namespace {

// An axis may have 2^31 places, and a graph 2^17 nodes: products and sums of such numbers do not fit into 64 bits. So
// they are computed as doubles, exact up to 2^53. A count that no machine could compute stays at kBeyond, and
// step_cost() refuses the step.
constexpr int64_t kFloat = 4;
constexpr int64_t kBeyond = int64_t{1} << 62;

int64_t counted(double count) {
  return count < static_cast<double>(kBeyond) ? static_cast<int64_t>(count) : kBeyond;
}

double bytes_of(const Shape& shape, int64_t batch = 1) {
  return kFloat * static_cast<double>(elements(shape, batch));
}

double traffic(const std::vector<Type>& types) {
  double bytes = 0;
  for (const Type& type : types) bytes += bytes_of(type.shape);
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
    double param_bytes = 0, trained_bytes = 0;
    bool weight = false;  // trained is more than a bias, whose gradient is a sum
    for (const Slot& slot : node.params) {
      const Parameter& p = workload.parameters[static_cast<size_t>(slot.param)];
      const double bytes = bytes_of(p.shape);
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
      const double flops = 2.0 * static_cast<double>(batch) *
                           static_cast<double>(row.macs(NodeView{node, inputs, workload}, types[id]));
      cost.flops_forward = counted(flops);
      // A product of two inputs (attention) has a gradient for each of them, weights have one of their own.
      const int gradients = (upstream ? (node.params.empty() ? 2 : 1) : 0) + (weight ? 1 : 0);
      cost.flops_backward = counted(gradients * flops);
    }
    for (Type& type : inputs) type.shape = with_batch(type.shape, batch);
    const double in = traffic(inputs), out = bytes_of(types[id].shape, batch);
    cost.bytes_forward = counted(in + param_bytes + out);
    if (needs_gradient[id])
      cost.bytes_backward = counted(out + in + param_bytes + trained_bytes + (upstream ? in : 0));
  }
  return costs;
}

constexpr int64_t Cost::*kCounts[] = {&Cost::flops_forward, &Cost::flops_backward, &Cost::bytes_forward,
                                      &Cost::bytes_backward};

void add(Cost& sum, const Cost& more) {
  for (const auto count : kCounts)
    sum.*count = counted(static_cast<double>(sum.*count) + static_cast<double>(more.*count));
}

Status countable(const Cost& step, int64_t batch) {
  const auto beyond = [&](auto count) { return step.*count >= kBeyond; };
  if (std::ranges::none_of(kCounts, beyond)) return Done{};
  return Error{.message = fmt::format(
                   "a step of {} rows has more than 2^62 operations or bytes: no machine makes it", batch),
               .remedy = "smaller shapes, or fewer rows in a batch"};
}

// Products along an axis or a sequence that is longer than this, as no network's is, are not looked at one by one, which
// would take too long. None of them counts as needed, so no rule accuses a contender because of them.
constexpr int64_t kLongestAxis = int64_t{1} << 24;

// Along one axis: products of kernel and picture that meet a real pixel, of all.
double real_share(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t before, int64_t dilation) {
  if (out > kLongestAxis) return 0;
  double real = 0;
  for (int64_t o = 0; o < out; ++o) {
    // The places of the kernel before the picture, and before its end.
    const int64_t first = before - o * stride;
    const auto places = [&](int64_t until) {
      return until <= 0 ? 0 : std::min(kernel, (until + dilation - 1) / dilation);
    };
    real += static_cast<double>(places(first + in) - places(first));
  }
  return real / (static_cast<double>(out) * static_cast<double>(kernel));
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
  if (queries > kLongestAxis) return 0;
  double seen = 0;
  for (int64_t t = 0; t < queries; ++t) {
    const int64_t first = window > 0 ? std::max<int64_t>(0, t + 1 - window) : 0;
    const int64_t end = node.flag("causal") ? std::min(t + 1, keys) : keys;
    seen += static_cast<double>(std::max<int64_t>(0, end - first));
  }
  return seen / (static_cast<double>(queries) * static_cast<double>(keys));
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
  CHECK_OK(countable(cost, batch));
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
    CHECK_OK(countable(nodes[n], training.batch));
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
    CHECK_OK(countable(at->cost, batch));
  }
  return kinds;
}

}  // namespace bakeoff::ir
