#include "ir/builder.h"

#include <cassert>

#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff::ir {

Builder::Builder(std::string name) { workload_.name = std::move(name); }

Builder::Value Builder::input(std::string name, Type type) {
  assert(workload_.nodes.empty() && "declare all inputs before the first node");
  workload_.inputs.push_back({std::move(name), type});
  types_.push_back(std::move(type));
  return static_cast<Value>(types_.size()) - 1;
}

Slot Builder::parameter(std::string slot, std::string name, Shape shape, Role role) {
  ParamId id = workload_.find_parameter(name);
  if (id < 0) {
    id = static_cast<ParamId>(workload_.parameters.size());
    workload_.parameters.push_back({std::move(name), std::move(shape), role});
  }
  return {std::move(slot), id};
}

Builder::Value Builder::add(Node node) {
  node.output = "h" + std::to_string(workload_.nodes.size() + 1);
  std::vector<Type> inputs;
  for (const Value id : node.inputs) inputs.push_back(types_[static_cast<size_t>(id)]);
  Result<Type> type = info(node.op).shape(NodeView{node, inputs, workload_});
  if (!type && first_error_.empty()) {
    first_error_ = node.output + " = " + info(node.op).name + ": " + type.error().message;
  }
  types_.push_back(type ? *type : inputs.empty() ? Type{} : inputs[0]);
  workload_.nodes.push_back(std::move(node));
  return static_cast<Value>(types_.size()) - 1;
}

Builder::Value Builder::convolution(Op op, Value x, const std::string& layer, const Conv& conv,
                                    Shape weight) {
  Node node = node_with_defaults(op);
  node.inputs = {x};
  weight.insert(weight.end(), conv.kernel.begin(), conv.kernel.end());
  node.params = {parameter("weight", layer + ".weight", weight, Role::kWeight)};
  if (conv.bias) node.params.push_back(parameter("bias", layer + ".bias", {conv.channels}, Role::kBias));
  if (!conv.stride.empty()) set_attribute(node, "stride", conv.stride);
  if (!conv.pad.empty()) set_attribute(node, "pad", conv.pad);
  if (!conv.dilation.empty()) set_attribute(node, "dilation", conv.dilation);
  set_attribute(node, "groups", conv.groups);
  if (!conv.output_pad.empty()) set_attribute(node, "output_pad", conv.output_pad);
  return add(std::move(node));
}

Builder::Value Builder::conv(Value x, const std::string& layer, const Conv& conv) {
  constexpr Op kOps[] = {Op::kConv1d, Op::kConv2d, Op::kConv3d};
  const int64_t channels = shape(x).size() == conv.kernel.size() + 2 ? shape(x)[1] : conv.groups;
  return convolution(kOps[conv.kernel.size() - 1], x, layer, conv, {conv.channels, channels / conv.groups});
}

Builder::Value Builder::conv_transpose(Value x, const std::string& layer, const Conv& conv) {
  constexpr Op kOps[] = {Op::kConvTranspose1d, Op::kConvTranspose2d, Op::kConvTranspose3d};
  return convolution(kOps[conv.kernel.size() - 1], x, layer, conv,
                     {shape(x)[1], conv.channels / conv.groups});
}

Builder::Value Builder::linear(Value x, const std::string& layer, int64_t features, bool bias) {
  Node node = node_with_defaults(Op::kLinear);
  node.inputs = {x};
  node.params = {parameter("weight", layer + ".weight", {features, shape(x).back()}, Role::kWeight)};
  if (bias) node.params.push_back(parameter("bias", layer + ".bias", {features}, Role::kBias));
  return add(std::move(node));
}

Builder::Value Builder::batch_norm(Value x, const std::string& layer, double eps, double momentum) {
  Node node = node_with_defaults(Op::kBatchNorm);
  node.inputs = {x};
  const Shape channels = {shape(x)[1]};
  node.params = {parameter("weight", layer + ".weight", channels, Role::kScale),
                 parameter("bias", layer + ".bias", channels, Role::kShift),
                 parameter("mean", layer + ".running_mean", channels, Role::kRunningMean),
                 parameter("var", layer + ".running_var", channels, Role::kRunningVar)};
  set_attribute(node, "eps", eps);
  set_attribute(node, "momentum", momentum);
  return add(std::move(node));
}

void Builder::add_affine(Node& node, const std::string& layer, const Shape& sizes, Affine has) {
  if (has.weight) node.params.push_back(parameter("weight", layer + ".weight", sizes, Role::kScale));
  if (has.bias) node.params.push_back(parameter("bias", layer + ".bias", sizes, Role::kShift));
}

Builder::Value Builder::layer_norm(Value x, const std::string& layer, int64_t dims, double eps, Affine has) {
  Node node = node_with_defaults(Op::kLayerNorm);
  node.inputs = {x};
  add_affine(node, layer, Shape(shape(x).end() - dims, shape(x).end()), has);
  set_attribute(node, "dims", dims);
  set_attribute(node, "eps", eps);
  return add(std::move(node));
}

Builder::Value Builder::rms_norm(Value x, const std::string& layer, int64_t dims, double eps, bool weight) {
  Node node = node_with_defaults(Op::kRmsNorm);
  node.inputs = {x};
  add_affine(node, layer, Shape(shape(x).end() - dims, shape(x).end()), {weight, false});
  set_attribute(node, "dims", dims);
  set_attribute(node, "eps", eps);
  return add(std::move(node));
}

Builder::Value Builder::group_norm(Value x, const std::string& layer, int64_t groups, double eps,
                                   Affine has) {
  Node node = node_with_defaults(Op::kGroupNorm);
  node.inputs = {x};
  add_affine(node, layer, {shape(x)[1]}, has);
  set_attribute(node, "groups", groups);
  set_attribute(node, "eps", eps);
  return add(std::move(node));
}

Builder::Value Builder::embedding(Value ids, const std::string& layer, int64_t rows, int64_t width,
                                  std::optional<int64_t> padding_idx) {
  Node node = node_with_defaults(Op::kEmbedding);
  if (padding_idx) set_attribute(node, "padding_idx", *padding_idx);
  node.inputs = {ids};
  node.params = {parameter("weight", layer + ".weight", {rows, width}, Role::kTable)};
  return add(std::move(node));
}

Builder::Value Builder::position_embedding(Value x, const std::string& layer, int64_t rows) {
  Node node = node_with_defaults(Op::kPositionEmbedding);
  node.inputs = {x};
  node.params = {parameter("weight", layer + ".weight", {rows, shape(x).back()}, Role::kTable)};
  return add(std::move(node));
}

Builder::Value Builder::constant(double value) { return apply(Op::kConstant, {}, {{"value", value}}); }

Builder::Value Builder::parameter_value(const std::string& name, Shape sizes) {
  Node node = node_with_defaults(Op::kParameter);
  node.params = {parameter("weight", name, std::move(sizes), Role::kTable)};
  return add(std::move(node));
}

void Builder::freeze(const std::string& prefix) {
  for (Parameter& parameter : workload_.parameters) {
    if (parameter.name.starts_with(prefix)) parameter.frozen = true;
  }
}

Builder::Value Builder::lstm(Value x, const std::string& layer, int64_t units, bool bias, bool reverse) {
  Node node = node_with_defaults(Op::kLstm);
  node.inputs = {x};
  node.params = {parameter("weight_ih", layer + ".weight_ih_l0", {4 * units, shape(x).back()}, Role::kWeight),
                 parameter("weight_hh", layer + ".weight_hh_l0", {4 * units, units}, Role::kWeight)};
  if (bias) node.params.push_back(parameter("bias", layer + ".bias_ih_l0", {4 * units}, Role::kBias));
  set_attribute(node, "reverse", reverse);
  return add(std::move(node));
}

Builder::Value Builder::gru(Value x, const std::string& layer, int64_t units, bool bias, bool reverse) {
  Node node = node_with_defaults(Op::kGru);
  node.inputs = {x};
  node.params = {parameter("weight_ih", layer + ".weight_ih_l0", {3 * units, shape(x).back()}, Role::kWeight),
                 parameter("weight_hh", layer + ".weight_hh_l0", {3 * units, units}, Role::kWeight)};
  for (const char* slot : {"bias_ih", "bias_hh"}) {
    if (bias) node.params.push_back(parameter(slot, layer + "." + slot + "_l0", {3 * units}, Role::kBias));
  }
  set_attribute(node, "reverse", reverse);
  return add(std::move(node));
}

Builder::Value Builder::tied_linear(Value x, const std::string& table, const std::string& bias) {
  Node node = node_with_defaults(Op::kLinear);
  node.inputs = {x};
  const ParamId weight = workload_.find_parameter(table + ".weight");
  assert(weight >= 0 && "make the embedding first");
  const int64_t rows = workload_.parameters[static_cast<size_t>(weight)].shape[0];
  node.params = {{"weight", weight}, parameter("bias", bias, {rows}, Role::kBias)};
  return add(std::move(node));
}

Builder::Value Builder::apply(Op op, std::vector<Value> inputs, std::vector<Attribute> attributes) {
  Node node = node_with_defaults(op);
  node.inputs = std::move(inputs);
  for (Attribute& a : attributes) set_attribute(node, a.name, std::move(a.value));
  return add(std::move(node));
}

Builder::Value Builder::named(Value value, const std::string& name) {
  assert(!workload_.is_input(value));
  workload_.nodes[static_cast<size_t>(value) - workload_.inputs.size()].output = name;
  return value;
}

Result<Workload> Builder::finish(Value loss) {
  if (!first_error_.empty()) return Error{.message = first_error_};
  named(loss, "loss");
  CHECK_OK(infer(workload_));
  return workload_;
}

}  // namespace bakeoff::ir
