#include "emit/network_ops.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "ir/dropout.h"
#include "ir/op_table.h"

namespace bakeoff::emit {
using ir::Node;

namespace {

// The input and the parameters of a norm.
std::vector<std::string> affine(ForwardPrinter& p) {
  std::vector<std::string> arguments = {p.input()};
  if (p.has("weight")) arguments.push_back(p.full_param("weight"));
  if (p.has("bias")) arguments.push_back((p.has("weight") ? "" : "shift=") + p.full_param("bias"));
  return arguments;
}

}  // namespace

std::string option(const char* name, const std::string& value) { return fmt::format("{}={}", name, value); }

void layer_norm(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> arguments = affine(p);
  arguments.push_back(option("dims", std::to_string(node.integer("dims"))));
  if (p.explicit_norms()) arguments.push_back(option("eps", python_real(node.real("eps"))));
  p.assign_full("layer_norm", arguments);
}

void rms_norm(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> arguments = affine(p);
  arguments.push_back(option("dims", std::to_string(node.integer("dims"))));
  arguments.push_back(option("eps", python_real(node.real("eps"))));
  p.assign_full("rms_norm", arguments);
}

void group_norm(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> arguments = affine(p);
  arguments.push_back(option("groups", std::to_string(node.integer("groups"))));
  arguments.push_back(option("eps", python_real(node.real("eps"))));
  p.assign_full("group_norm", arguments);
}

void softmax(ForwardPrinter& p, const Node& node, const char* function) {
  p.assign_full(function, {p.input(), option("axis", std::to_string(p.axes().at(node.integer("axis"))))});
}

void transpose(ForwardPrinter& p, const Node& node, const char* function) {
  const std::vector<int64_t> perm = physical_perm(p.reads(), p.gives(), node.integers("perm"));
  if (is_identity(perm)) return p.alias();
  p.assign(function, {p.input(), python_tuple(perm)});
}

void pad(ForwardPrinter& p, const Node& node, const char* function, const char* brackets) {
  const auto within = [&](const std::string& text) { return brackets[0] + text + brackets[1]; };
  const std::vector<int64_t>& pads = node.integers("pad");
  std::vector<std::string> widths(p.input_shape().size(), within("0, 0"));
  for (size_t axis = 1; axis < widths.size(); ++axis) {
    const auto at = static_cast<size_t>(p.axes().at(static_cast<int64_t>(axis)));
    widths[at] = within(fmt::format("{}, {}", pads[2 * axis - 2], pads[2 * axis - 1]));
  }
  p.assign(function, {p.input(), within(join(widths, ", ")),
                      option("constant_values", python_real(node.real("value")))});
}

void concat(ForwardPrinter& p, const Node& node, const char* function) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < node.inputs.size(); ++i) parts.push_back(p.input(i));
  p.assign_sequence(function, parts, option("axis", std::to_string(p.axes().at(node.integer("axis")))));
}

void join_values(ForwardPrinter& p, const char* reshape, const char* function) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < p.node().inputs.size(); ++i) {
    const ir::Shape& shape = p.shape(p.node().inputs[i]);
    parts.push_back(shape.size() == 2 ? p.input(i)
                                      : fmt::format("{}({}, (-1, {}))", reshape, p.input(i),
                                                    ir::product(shape, 1, shape.size())));
  }
  p.assign_sequence(function, parts, "axis=1");
}

void constant(ForwardPrinter& p, const Node& node) { p.fixed(real_literal(node.real("value"))); }
void parameter(ForwardPrinter& p, const Node&) { p.fixed(p.param("weight")); }

void lrn(ForwardPrinter& p, const Node& node) {
  p.assign_full(
      "local_response_norm",
      {p.input(), fmt::format("size={}", node.integer("size")), "alpha=" + python_real(node.real("alpha")),
       "beta=" + python_real(node.real("beta")), "k=" + python_real(node.real("k"))});
}

void position_embedding(ForwardPrinter& p, const char* add) {
  const std::string rows = fmt::format("{}[:{}]", p.full_param("weight"), p.input_shape()[1]);
  if (p.mixed()) return p.assign_full(add, {p.input(), rows});
  p.assign_flat(p.input() + " + " + rows, add, {p.input(), rows});
}

void attention(ForwardPrinter& p, const Node& node, const std::string& key, const char* repeat) {
  const bool cached = node.has("keys");
  std::vector<std::string> arguments;
  for (size_t i = 0; i < node.inputs.size(); ++i) arguments.push_back(p.input(i));
  if (cached) {
    if (!p.cache_argument().empty()) arguments.push_back(p.cache_argument());
    for (const char* cache : {"keys", "values"}) arguments.push_back(p.full_param(cache));
  } else if (node.flag("causal")) {
    arguments.push_back("causal=True");
  }
  if (node.integer("window") > 0) arguments.push_back(fmt::format("window={}", node.integer("window")));
  const int64_t heads = p.shape(node.inputs[1])[2], shared = p.shape(node.inputs[0])[2] / heads;
  const bool drops = ir::drops(node) && !p.graph().predicts;
  if (drops && !key.empty()) arguments.push_back("key=" + key);
  if (drops) arguments.push_back("rate=" + dropout_constant(p.graph(), node.real("rate")));
  const bool repeats = drops && shared > 1 && repeat != nullptr, broadcasts = heads == 1 && repeat == nullptr;
  for (size_t i = 1; repeats && i < 3; ++i)
    arguments[i] = fmt::format("{}({}, {}, axis=2)", repeat, arguments[i], shared);
  const bool grouped = shared > 1 && !repeats && !broadcasts;
  p.assign(cached ? "cached_attention" : grouped ? "grouped_attention" : "attention", arguments);
}

void recurrent(ForwardPrinter& p, const std::string& weight_ih, const std::string& weight_hh) {
  std::vector<std::string> arguments = {p.input(), weight_ih, weight_hh};
  for (const char* bias : {"bias", "bias_ih", "bias_hh"}) {
    if (p.has(bias)) arguments.push_back(p.full_param(bias));
  }
  if (p.node().flag("reverse")) arguments.push_back("reverse=True");
  p.assign(ir::info(p.node().op).name, arguments);
}

}  // namespace bakeoff::emit
