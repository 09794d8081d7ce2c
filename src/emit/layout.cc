// A fixed point of passes. A Pass walks the graph forwards and decides for every node the orders that it
// reads and gives. It takes two sets as given: inputs that are loaded in N,H,W,C, and flattens that must
// not keep N,H,W,C. A pass can show that a set is too small: a node converts an input (so load it in that
// order), or two nodes need one linear weight in different orders (so block their flattens). The set grows
// and the walk starts again. Sets only grow, so this ends.
//
// One walk forwards suffices because the rules are local: convolutions want N,H,W,C, elementwise ops follow
// their inputs. What depends on later nodes is computed backwards before, in wanted_by_spatial_ops().
//
// The weight behind a flatten. If x is held in N,H,W,C, flatten(x) has its features in the order H,W,C. The
// weight of the linear that follows is stored to match: O,(C,H,W) is viewed as O,C,H,W, transposed to
// H,W,C,O and reshaped to (H,W,C),O. This costs nothing at run time. Pass::origin() names the flatten that
// a value comes from, directly or through elementwise ops.

#include "emit/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/texts.h"
#include "ir/elementwise.h"
#include "ir/op_table.h"

namespace bakeoff::emit {
namespace {

using ir::Op;
using ir::Shape;
using Ints = std::vector<int64_t>;

// N, channels and one to three axes of places.
bool is_picture(const Shape& shape) { return shape.size() >= 3 && shape.size() <= 5; }

// Of a canonical array of `rank` axes: N, the places, the channels.
Ints to_last(size_t rank) {
  Ints perm = {0};
  for (size_t axis = 2; axis < rank; ++axis) perm.push_back(static_cast<int64_t>(axis));
  perm.push_back(1);
  return perm;
}

bool passes_positions(Op op) {
  return op == Op::kRelu || op == Op::kGelu || op == Op::kSigmoid || op == Op::kTanh || op == Op::kDropout ||
         ir::elementwise_of_one(op);
}

// The inputs whose order a node follows. What an expand takes the number of rows from is none: a class token beside
// patches would turn the whole sequence for the picture's sake.
std::span<const ir::ValueId> followed(const ir::Node& node) {
  return std::span(node.inputs).first(node.op == Op::kExpand ? 1 : node.inputs.size());
}

// A reshape of places alone, as of a picture's patches to a sequence or back: it takes and gives either order.
bool keeps_channels(const ir::Node& node, const Shape& in, const Shape& out) {
  const auto known = [](const Shape& shape) {
    return is_picture(shape) && std::ranges::find(shape, ir::kSteps) == shape.end();
  };
  return node.op == Op::kReshape && known(in) && known(out) && in[0] == out[0] && in[1] == out[1];
}

// Whether the elements of a picture lie in the same row-major sequence in both orders.
bool one_order(const Shape& x) { return is_picture(x) && (x[1] == 1 || ir::product(x, 2, x.size()) == 1); }

// One attempt: orders of all values, given which inputs are loaded in N,H,W,C and which flattens may not keep
// it.
class Pass {
 public:
  Pass(const ir::Workload& workload, const std::vector<ir::Type>& types, const std::vector<bool>& wanted,
       const std::set<int>& last_inputs, const std::set<int>& blocked)
      : workload_(workload),
        types_(types),
        wanted_(wanted),
        blocked_(blocked),
        held_(types.size(), Order::kCanonical),
        origin_(types.size(), -1) {
    for (const int input : last_inputs) held_[static_cast<size_t>(input)] = Order::kChannelsLast;
    for (size_t n = 0; n < workload.nodes.size(); ++n) plan_node(static_cast<int>(n));
  }

  const std::vector<Order>& held() const { return held_; }
  const std::vector<std::vector<Order>>& reads() const { return reads_; }
  // Node of the flatten whose H,W,C order a kFlatLast value has.
  int origin(ir::ValueId id) const { return origin_[static_cast<size_t>(id)]; }
  // C,H,W (or C,W or C,D,H,W) of the value that an H,W,C-ordered linear input was flattened from; empty for canonical inputs.
  Shape picture(ir::ValueId id) const {
    if (origin(id) < 0) return {};
    const Shape& x = shape(workload_.nodes[static_cast<size_t>(origin(id))].inputs[0]);
    return Shape(x.begin() + 1, x.end());
  }

 private:
  const Shape& shape(ir::ValueId id) const { return types_[static_cast<size_t>(id)].shape; }
  Order held(ir::ValueId id) const { return held_[static_cast<size_t>(id)]; }

  bool feeds_linear_only(ir::ValueId id) const {
    const auto readers = ir::consumers(workload_, id);
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int n) {
      const ir::Node& node = workload_.nodes[static_cast<size_t>(n)];
      return node.op == Op::kLinear ||
             (passes_positions(node.op) && feeds_linear_only(workload_.output_of(n)));
    });
  }

  // Whether all that reads a value takes N,H,W,C at no cost.
  bool turns_for_free(ir::ValueId id) const {
    const auto readers = ir::consumers(workload_, id);
    return !readers.empty() && std::ranges::all_of(readers, [&](int n) {
      const ir::Node& node = workload_.nodes[static_cast<size_t>(n)];
      const ir::ValueId out = workload_.output_of(n);
      return node.op == Op::kTranspose || ir::info(node.op).axes == ir::AxisRule::kSpatial ||
             (keeps_channels(node, shape(id), shape(out)) && turns_for_free(out));
    });
  }

  // The common order of inputs of one rank: N,H,W,C if any of them is held so.
  Order common(const ir::Node& node) const {
    const bool any =
        std::ranges::any_of(followed(node), [&](ir::ValueId id) { return held(id) == Order::kChannelsLast; });
    return any ? Order::kChannelsLast : Order::kCanonical;
  }

  void plan_node(int n) {
    const ir::Node& node = workload_.nodes[static_cast<size_t>(n)];
    const auto out = static_cast<size_t>(workload_.output_of(n));
    if (node.inputs.empty()) {
      held_[out] = wanted_[out] ? Order::kChannelsLast : Order::kCanonical;
      reads_.emplace_back();
      return;
    }
    const ir::ValueId in = node.inputs[0];
    const ir::AxisRule rule = ir::info(node.op).axes;
    const bool elements = rule == ir::AxisRule::kElementwise;
    const bool picture = is_picture(elements ? types_[out].shape : shape(in));
    Order read = Order::kCanonical;
    Order give = Order::kCanonical;
    if (passes_positions(node.op)) {
      read = give = held(in);
      origin_[out] = origin(in);
    } else if (rule == ir::AxisRule::kSpatial && picture) {
      read = Order::kChannelsLast;
      give = is_picture(types_[out].shape) ? read : Order::kCanonical;
    } else if (picture && node.has_attribute("keepdims")) {
      std::tie(read, give) = plan_reduction(node, types_[out].shape);
    } else if (ir::is_loss(node.op) && shape(in) == shape(node.inputs[1])) {  // of elements
      read = workload_.find_parameter("output") < 0 ? held(in) : Order::kCanonical;
    } else if ((rule == ir::AxisRule::kElementwise || rule == ir::AxisRule::kAxis) && picture) {
      read = give = common(node);
    } else if (node.op == Op::kTranspose && picture) {
      read = held(in);
      give = wanted_[out] ? Order::kChannelsLast : Order::kCanonical;
    } else if (keeps_channels(node, shape(in), types_[out].shape) &&
               turns_for_free(static_cast<ir::ValueId>(out))) {
      read = give = held(in);
    } else if (node.op == Op::kLinear) {
      read = held(in) == Order::kFlatLast ? Order::kFlatLast : Order::kCanonical;
    } else if (picture && types_[out].shape.size() == 2 && held(in) == Order::kChannelsLast) {
      std::tie(read, give) = plan_flatten(n);
    } else if (node.op == Op::kReshape && !picture && wanted_[out] && one_order(types_[out].shape)) {
      give = Order::kChannelsLast;
    }
    held_[out] = give;
    reads_.emplace_back(node.inputs.size(), read);
    if (node.op == Op::kTake) reads_.back()[1] = Order::kCanonical;
    // Of the second input of an expand only the number of rows counts.
    if (node.op == Op::kExpand) reads_.back()[1] = held(node.inputs[1]);
    for (size_t i = 0; elements && i < node.inputs.size(); ++i) {
      if (shape(node.inputs[i]).empty()) reads_.back()[i] = Order::kCanonical;
    }
  }

  // A reduction keeps the order in which it finds a picture, where the axes that stay are then in order.
  std::pair<Order, Order> plan_reduction(const ir::Node& node, const Shape& out) const {
    const Order in = held(node.inputs[0]);
    const size_t rank = shape(node.inputs[0]).size();
    if (out.size() == rank || in == Order::kCanonical) return {in, in};
    const Ints axes = node.reduced_axes();
    const bool channels_go = std::find(axes.begin(), axes.end(), 1) != axes.end();
    const bool places_go = axes.size() - (channels_go ? 1 : 0) == rank - 2;
    return {channels_go || places_go ? in : Order::kCanonical, Order::kCanonical};
  }

  std::pair<Order, Order> plan_flatten(int n) {
    const ir::Node& node = workload_.nodes[static_cast<size_t>(n)];
    if (node.op != Op::kFlatten && node.op != Op::kReshape) return {Order::kCanonical, Order::kCanonical};
    const Shape& x = shape(node.inputs[0]);
    if (one_order(x)) return {Order::kChannelsLast, Order::kCanonical};
    if (blocked_.contains(n) || !feeds_linear_only(workload_.output_of(n))) {
      return {Order::kCanonical, Order::kCanonical};
    }
    origin_[static_cast<size_t>(workload_.output_of(n))] = n;
    return {Order::kChannelsLast, Order::kFlatLast};
  }

  const ir::Workload& workload_;
  const std::vector<ir::Type>& types_;
  const std::vector<bool>& wanted_;
  const std::set<int>& blocked_;
  std::vector<Order> held_;
  std::vector<int> origin_;
  std::vector<std::vector<Order>> reads_;
};

// A transposition that costs nothing where its input is held in N,H,W,C.
bool moves_channels_last(const ir::Node& node) {
  return node.op == Op::kTranspose && node.integers("perm").size() > 3 &&
         node.integers("perm") == to_last(node.integers("perm").size());
}

// By value: of three to five axes and read by a spatial op, directly or through ops that follow their inputs.
std::vector<bool> wanted_by_spatial_ops(const ir::Workload& workload, const std::vector<ir::Type>& types) {
  std::vector<bool> wants(types.size(), false);
  for (size_t n = workload.nodes.size(); n-- > 0;) {
    const ir::Node& node = workload.nodes[n];
    const ir::AxisRule rule = ir::info(node.op).axes;
    const bool follows = rule == ir::AxisRule::kElementwise || rule == ir::AxisRule::kAxis;
    const auto out = static_cast<size_t>(workload.output_of(static_cast<int>(n)));
    const bool sizes =
        !node.inputs.empty() &&
        keeps_channels(node, types[static_cast<size_t>(node.inputs[0])].shape, types[out].shape);
    const bool wanted =
        rule == ir::AxisRule::kSpatial || moves_channels_last(node) || ((follows || sizes) && wants[out]);
    for (const ir::ValueId id : followed(node)) {
      if (wanted && is_picture(types[static_cast<size_t>(id)].shape)) wants[static_cast<size_t>(id)] = true;
    }
  }
  return wants;
}

// A parameter that is a value is stored in one order: the canonical one where anything else reads it.
void settle_parameters(const ir::Workload& workload, std::vector<bool>& wanted) {
  std::map<ir::ParamId, int> uses;
  for (const ir::Node& node : workload.nodes) {
    for (const ir::Slot& slot : node.params) ++uses[slot.param];
  }
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    const ir::Node& node = workload.nodes[n];
    if (node.op == Op::kParameter && uses[node.param("weight")] > 1)
      wanted[static_cast<size_t>(workload.output_of(static_cast<int>(n)))] = false;
  }
}

// Adds the inputs that some node would have to convert to N,H,W,C; true if there were any.
bool add_converted_inputs(const ir::Workload& workload, const Pass& pass, std::set<int>& last_inputs) {
  const size_t before = last_inputs.size();
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    for (size_t i = 0; i < workload.nodes[n].inputs.size(); ++i) {
      const ir::ValueId id = workload.nodes[n].inputs[i];
      if (workload.is_input(id) && pass.reads()[n][i] == Order::kChannelsLast) last_inputs.insert(id);
    }
  }
  return last_inputs.size() > before;
}

// Parameters that are rows of an embedding: they keep their canonical layout also where a linear shares them.
std::set<ir::ParamId> tables(const ir::Workload& workload) {
  std::set<ir::ParamId> all;
  for (const ir::Node& node : workload.nodes) {
    if (node.op == Op::kEmbedding || node.op == Op::kPositionEmbedding) all.insert(node.param("weight"));
  }
  return all;
}

// Blocks the flattens that would need one linear weight in two orders; true if there were any.
bool block_conflicts(const ir::Workload& workload, const Pass& pass, std::set<int>& blocked) {
  std::map<ir::ParamId, std::set<Shape>> orders;
  for (const ir::ParamId table : tables(workload)) orders[table].insert(Shape{});
  for (const ir::Node& node : workload.nodes) {
    if (node.op == Op::kParameter) orders[node.param("weight")].insert(Shape{});
    if (!ir::is_recurrent(node.op)) continue;
    for (const char* slot : {"weight_ih", "weight_hh"}) orders[node.param(slot)].insert(Shape{});
  }
  const auto each_linear = [&](auto&& visit) {
    for (const ir::Node& node : workload.nodes) {
      if (node.op == Op::kLinear) visit(node.param("weight"), node.inputs[0]);
    }
  };
  each_linear([&](ir::ParamId weight, ir::ValueId in) { orders[weight].insert(pass.picture(in)); });
  const size_t before = blocked.size();
  each_linear([&](ir::ParamId weight, ir::ValueId in) {
    if (orders[weight].size() > 1 && pass.origin(in) >= 0) blocked.insert(pass.origin(in));
  });
  return blocked.size() > before;
}

ParamLayout linear_layout(const Shape& weight, const Shape& picture, bool transposed) {
  if (picture.empty()) return transposed ? ParamLayout{.perm = {1, 0}} : ParamLayout{};
  Ints view = {weight[0]}, perm = {0};
  view.insert(view.end(), picture.begin(), picture.end());
  for (size_t axis = 2; axis <= picture.size(); ++axis) perm.push_back(static_cast<int64_t>(axis));
  perm.push_back(1);
  if (!transposed) return {.view = view, .perm = perm, .reshape = weight};
  std::rotate(perm.begin(), perm.begin() + 1, perm.end());
  return {.view = view, .perm = perm, .reshape = {weight[1], weight[0]}};
}

// For each conv kernel: the number of groups if it is stored as a depthwise one, else 0.
std::map<ir::ParamId, int64_t> depthwise_groups(const ir::Workload& workload, const LayoutOptions& options) {
  std::map<ir::ParamId, int64_t> groups;
  for (const ir::Node& node : workload.nodes) {
    if (node.op != Op::kConv2d) continue;
    const ir::ParamId weight = node.param("weight");
    const int64_t count = node.integer("groups");
    const bool depthwise = count > 1 && workload.parameters[static_cast<size_t>(weight)].shape[1] == 1 &&
                           options.depthwise_kernel != nullptr && options.depthwise_kernel(node);
    const int64_t mine = depthwise ? count : 0;
    const auto [found, fresh] = groups.emplace(weight, mine);
    if (!fresh && found->second != mine) found->second = 0;
  }
  return groups;
}

// I, O/groups and the kernel as the kernel, I/groups, O.
ParamLayout stretched_layout(const Shape& weight, int64_t groups) {
  Ints view = {groups, weight[0] / groups}, perm, stored(weight.begin() + 2, weight.end());
  view.insert(view.end(), weight.begin() + 1, weight.end());
  for (size_t axis = 3; axis < view.size(); ++axis) perm.push_back(static_cast<int64_t>(axis));
  perm.insert(perm.end(), {1, 0, 2});
  stored.insert(stored.end(), {weight[0] / groups, weight[1] * groups});
  return {.view = view, .perm = perm, .reshape = stored};
}

void plan_params(const ir::Workload& workload, const Pass& pass, const LayoutOptions& options,
                 LayoutPlan& plan) {
  const auto groups = depthwise_groups(workload, options);
  auto embeddings = tables(workload);
  for (const ir::Node& node : workload.nodes) {
    if (options.plain_values && node.op == Op::kParameter) embeddings.insert(node.param("weight"));
  }
  plan.params.resize(workload.parameters.size());
  plan.depthwise.assign(workload.nodes.size(), false);
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    const ir::Node& node = workload.nodes[n];
    if (ir::is_recurrent(node.op) && options.transpose_linear) {
      for (const char* slot : {"weight_ih", "weight_hh"}) {
        if (embeddings.contains(node.param(slot))) continue;
        plan.params[static_cast<size_t>(node.param(slot))] = {.perm = {1, 0}};
      }
    }
    if (node.op == Op::kParameter &&
        pass.held()[static_cast<size_t>(workload.output_of(static_cast<int>(n)))] == Order::kChannelsLast) {
      const ir::ParamId value = node.param("weight");
      plan.params[static_cast<size_t>(value)] = {
          .perm = to_last(workload.parameters[static_cast<size_t>(value)].shape.size())};
    }
    if (!ir::is_conv(node.op) && !ir::is_conv_transpose(node.op) && node.op != Op::kLinear) continue;
    const ir::ParamId id = node.param("weight");
    const Shape& shape = workload.parameters[static_cast<size_t>(id)].shape;
    ParamLayout& layout = plan.params[static_cast<size_t>(id)];
    if (node.op == Op::kLinear) {
      if (embeddings.contains(id)) continue;
      layout = linear_layout(shape, pass.picture(node.inputs[0]), options.transpose_linear);
    } else if (const int64_t count = node.op == Op::kConv2d ? groups.at(id) : 0; count > 0) {
      const int64_t multiplier = shape[0] / count;
      layout = {.view = {count, multiplier, shape[2], shape[3]}, .perm = {2, 3, 0, 1}};
      if (multiplier == 1) layout = {.perm = {2, 3, 0, 1}};
      plan.depthwise[n] = true;
    } else if (ir::is_conv_transpose(node.op) && options.stretched_conv_transpose) {
      layout = stretched_layout(shape, node.integer("groups"));
    } else {
      layout.perm.clear();  // places, I, O
      for (size_t axis = 2; axis < shape.size(); ++axis) layout.perm.push_back(static_cast<int64_t>(axis));
      layout.perm.insert(layout.perm.end(), {1, 0});
    }
  }
}

}  // namespace

bool LayoutPlan::converts(const ir::Workload& workload, int node, size_t input) const {
  const auto n = static_cast<size_t>(node);
  return reads[n][input] != values[static_cast<size_t>(workload.nodes[n].inputs[input])];
}

Order LayoutPlan::output(const ir::Workload& workload, int node) const {
  return values[static_cast<size_t>(workload.output_of(node))];
}

LayoutPlan plan_layout(const ir::Workload& workload, const std::vector<ir::Type>& types,
                       const LayoutOptions& options) {
  std::vector<bool> wanted = wanted_by_spatial_ops(workload, types);
  settle_parameters(workload, wanted);
  std::set<int> last_inputs;
  for (int id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    if (wanted[static_cast<size_t>(id)]) last_inputs.insert(id);
  }
  std::set<int> blocked;
  for (;;) {  // both sets only grow
    const Pass pass(workload, types, wanted, last_inputs, blocked);
    if (add_converted_inputs(workload, pass, last_inputs)) continue;
    if (block_conflicts(workload, pass, blocked)) continue;
    LayoutPlan plan{.values = pass.held(), .reads = pass.reads(), .params = {}, .depthwise = {}};
    plan.output_rank = types[static_cast<size_t>(workload.prediction())].shape.size();
    plan_params(workload, pass, options, plan);
    return plan;
  }
}

int64_t physical_axis(Order order, int64_t axis, size_t rank) {
  if (order != Order::kChannelsLast || axis == 0) return axis;
  return axis == 1 ? static_cast<int64_t>(rank) - 1 : axis - 1;
}

Shape physical_shape(Order order, const Shape& shape) {
  if (order != Order::kChannelsLast) return shape;
  Shape physical;
  for (const int64_t axis : to_last(shape.size())) physical.push_back(shape[static_cast<size_t>(axis)]);
  return physical;
}

Ints conversion_perm(Order from, Order to, size_t rank) {
  Ints perm(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto canonical = static_cast<int64_t>(axis);
    perm[static_cast<size_t>(physical_axis(to, canonical, rank))] = physical_axis(from, canonical, rank);
  }
  return perm;
}

Ints physical_perm(Order in, Order out, const Ints& perm) {
  Ints moved(perm.size());
  for (size_t axis = 0; axis < perm.size(); ++axis) {
    moved[static_cast<size_t>(physical_axis(out, static_cast<int64_t>(axis), perm.size()))] =
        physical_axis(in, perm[axis], perm.size());
  }
  return moved;
}

bool is_identity(const Ints& perm) {
  for (size_t axis = 0; axis < perm.size(); ++axis) {
    if (perm[axis] != static_cast<int64_t>(axis)) return false;
  }
  return true;
}

Shape stored_shape(const ParamLayout& layout, const Shape& canonical) {
  if (!layout.reshape.empty()) return layout.reshape;
  const Shape& viewed = layout.view.empty() ? canonical : layout.view;
  if (layout.perm.empty()) return viewed;
  Shape out;
  for (const int64_t axis : layout.perm) out.push_back(viewed[static_cast<size_t>(axis)]);
  return out;
}

namespace {

bool output_is_last(const ir::Workload& workload, const LayoutPlan& plan) {
  return plan.reads[static_cast<size_t>(workload.model_end())][0] == Order::kChannelsLast;
}

}  // namespace

std::string output_turn(const ir::Workload& workload, const LayoutPlan& plan) {
  if (!output_is_last(workload, plan)) return {};
  const Ints perm = conversion_perm(Order::kChannelsLast, Order::kCanonical, plan.output_rank);
  return fmt::format(".transpose({})", join(perm, ", "));
}

std::string layout_json(const ir::Workload& workload, const LayoutPlan& plan,
                        const std::vector<std::string>& targets) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& name, const std::string& target, const ParamLayout& layout) {
    std::string line = fmt::format("  \"{}\": {{\"target\": \"{}\"", name, target);
    if (!layout.view.empty()) line += fmt::format(", \"view\": [{}]", join(layout.view, ", "));
    if (!layout.perm.empty()) line += fmt::format(", \"perm\": [{}]", join(layout.perm, ", "));
    if (!layout.reshape.empty()) line += fmt::format(", \"reshape\": [{}]", join(layout.reshape, ", "));
    lines.push_back(line + "}");
  };
  for (size_t id = 0; id < workload.parameters.size(); ++id) {
    const std::string& name = workload.parameters[id].name;
    if (targets[id] != name || !plan.params[id].identity()) add(name, targets[id], plan.params[id]);
  }
  if (output_is_last(workload, plan)) add("output", "output", {.perm = to_last(plan.output_rank)});
  if (lines.empty()) return {};
  return fmt::format("{{\n{}\n}}\n", join(lines, ",\n"));
}

}  // namespace bakeoff::emit
