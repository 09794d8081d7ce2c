// One function for each op, found by the table at the end: the counterpart of emit/torch/ops.cc in C++.
// Layers are nn modules, whose options are methods (`.stride(2)`), and functions take them as arguments in a
// fixed order, so that little of the text is shared with Python's although the functions are the same. Some
// literals need a type: a list {0, 1} may be read as a text, and an int64_t that is printed as 2 is an int.

#include "emit/libtorch/ops.h"

#include <fmt/format.h>

#include <map>

#include "base/texts.h"
#include "emit/libtorch/cpp.h"
#include "emit/libtorch/network_ops.h"
#include "emit/resize.h"
#include "emit/spelling.h"
#include "emit/windows.h"
#include "ir/op_table.h"

namespace bakeoff::emit::libtorch {
namespace {

using ir::Op;

std::string padded(const std::string& x, const std::vector<int64_t>& pad, const std::string& value) {
  return fmt::format("torch::constant_pad_nd({}, {}, {})", x, braces(pads_from_last(pad)), value);
}

std::string function_of(const ir::Node& node) { return "torch::" + ir::info(node.op).name; }

// The module's call, or that of a function.
bool module_call(ForwardPrinter& p, const ir::Node& node, const std::string& x) {
  const std::string& module = p.module_of(node);
  if (!module.empty()) p.call(module, {x});
  return !module.empty();
}

// A padding that begins with the literal 0 could be a text, too: a null pointer.
std::string no_text(const std::string& padding) {
  if (padding == "0") return "at::IntArrayRef{0}";
  return padding.starts_with("{0") ? "at::IntArrayRef" + padding : padding;
}

void conv(ForwardPrinter& p, const ir::Node& node) {
  const auto& pad = node.integers("pad");
  std::string x = p.use(node.inputs[0]);
  if (!symmetric(pad)) x = padded(x, pad, "0");
  if (module_call(p, node, x)) return;
  const std::string inside = symmetric(pad) ? per_axis(pads_of_side(pad, false)) : "0";
  p.call(function_of(node),
         {x, p.param(node, "weight"), p.param(node, "bias"), per_axis(node.integers("stride")),
          no_text(inside), per_axis(node.integers("dilation")), std::to_string(node.integer("groups"))});
}

void conv_transpose(ForwardPrinter& p, const ir::Node& node) {
  const auto& pad = node.integers("pad");
  const std::string x = p.use(node.inputs[0]);
  std::string head = p.module_of(node);
  std::vector<std::string> arguments = {x};
  if (head.empty()) {
    head = function_of(node);
    arguments = {x,
                 p.param(node, "weight"),
                 p.param(node, "bias"),
                 per_axis(node.integers("stride")),
                 symmetric(pad) ? per_axis(pads_of_side(pad, false)) : "0",
                 per_axis(node.integers("output_pad")),
                 std::to_string(node.integer("groups")),
                 per_axis(node.integers("dilation"))};
  }
  if (symmetric(pad)) return p.call(head, arguments);
  std::vector<int64_t> cut = pads_from_last(pad);  // LibTorch itself cuts evenly only
  for (int64_t& n : cut) n = -n;
  p.call("torch::constant_pad_nd", {fmt::format("{}({})", head, join(arguments, ", ")), braces(cut), "0"});
}

void linear(ForwardPrinter& p, const ir::Node& node) {
  const std::string x = p.use(node.inputs[0]);
  if (module_call(p, node, x)) return;
  std::vector<std::string> arguments = {x, p.param(node, "weight")};
  if (node.has("bias")) arguments.push_back(p.param(node, "bias"));
  p.call("torch::linear", arguments);
}

void batch_norm(ForwardPrinter& p, const ir::Node& node) {
  const std::string x = p.use(node.inputs[0]);
  if (module_call(p, node, x)) return;
  p.call("torch::batch_norm", {x, p.param(node, "weight"), p.param(node, "bias"), p.param(node, "mean"),
                               p.param(node, "var"), "is_training()", python_real(node.real("momentum")),
                               python_real(node.real("eps")), "at::globalContext().userEnabledCuDNN()"});
}

void tail_norm(ForwardPrinter& p, const ir::Node& node) {
  const ir::Shape& shape = p.shape(node.inputs[0]);
  const std::string x = p.use(node.inputs[0]);
  if (module_call(p, node, x)) return;
  std::vector<std::string> arguments = {x, braces({shape.end() - node.integer("dims"), shape.end()}),
                                        p.param(node, "weight")};
  if (node.op == Op::kLayerNorm) arguments.push_back(p.param(node, "bias"));
  arguments.push_back(python_real(node.real("eps")));
  p.call(function_of(node), arguments);
}

void group_norm(ForwardPrinter& p, const ir::Node& node) {
  const std::string x = p.use(node.inputs[0]);
  if (module_call(p, node, x)) return;
  const std::string bias = p.param(node, "bias");
  const bool bias_alone = node.has("bias") && !node.has("weight");  // torch 2.13 fails in backward
  p.call("torch::group_norm", {x, std::to_string(node.integer("groups")),
                               bias_alone ? "torch::ones_like(" + bias + ")" : p.param(node, "weight"), bias,
                               python_real(node.real("eps"))});
}

void embedding(ForwardPrinter& p, const ir::Node& node) {
  const std::string x = p.use(node.inputs[0]);
  if (module_call(p, node, x)) return;
  const auto row = ir::padding_idx(node);
  std::vector<std::string> arguments = {p.param(node, "weight"), x};
  if (row) arguments.push_back(fmt::format("/*padding_idx=*/{}", *row));
  p.call("torch::embedding", arguments);
}

void dropout(ForwardPrinter& p, const ir::Node& node) { p.call(p.module_of(node), {p.use(node.inputs[0])}); }

void relu(ForwardPrinter& p, const ir::Node& node) { p.call("torch::relu", {p.use(node.inputs[0])}); }
void sigmoid(ForwardPrinter& p, const ir::Node& node) { p.call("torch::sigmoid", {p.use(node.inputs[0])}); }
void tanh(ForwardPrinter& p, const ir::Node& node) { p.call("torch::tanh", {p.use(node.inputs[0])}); }

void gelu(ForwardPrinter& p, const ir::Node& node) {
  const std::string form = node.word("form") == "tanh" ? "tanh" : "none";
  p.call("torch::gelu", {p.use(node.inputs[0]), quote(form)});
}

void softmax(ForwardPrinter& p, const ir::Node& node) {
  p.call("torch::softmax", {p.use(node.inputs[0]), std::to_string(node.integer("axis"))});
}

void pool(ForwardPrinter& p, const ir::Node& node, const std::string& filler,
          const std::vector<std::string>& tail) {
  const auto &kernel = node.integers("kernel"), &stride = node.integers("stride"),
             &pad = node.integers("pad");
  std::string x = p.use(node.inputs[0]);
  if (!symmetric(pad)) x = padded(x, pad, filler);
  std::vector<std::string> arguments = {x, per_axis(kernel)};
  const bool pads = symmetric(pad) && !all_are(pad, 0);
  if (stride != kernel || pads) arguments.push_back("/*stride=*/" + per_axis(stride));
  if (pads) {
    arguments.push_back("/*padding=*/" + per_axis(pads_of_side(pad, false)));
    arguments.insert(arguments.end(), tail.begin(), tail.end());
  }
  p.call(function_of(node), arguments);
}

void max_pool(ForwardPrinter& p, const ir::Node& node) { pool(p, node, "-INFINITY", {}); }

void avg_pool(ForwardPrinter& p, const ir::Node& node) {
  const auto& pad = node.integers("pad");
  const bool count = node.flag("count_include_pad");
  if (symmetric(pad) || count) {
    const std::string flag = std::string("/*count_include_pad=*/") + (count ? "true" : "false");
    return pool(p, node, "0", {"/*ceil_mode=*/false", flag});
  }
  p.call(ir::info(node.op).name + "_uneven", {p.use(node.inputs[0]), braces(node.integers("kernel")),
                                              braces(node.integers("stride")), braces(pads_from_last(pad))});
}

void global_avg_pool2d(ForwardPrinter& p, const ir::Node& node) {
  p.call(p.use(node.inputs[0]) + ".mean", {"{2, 3}"});
}

void resize(ForwardPrinter& p, const ir::Node& node) {
  const std::string mode = interpolate_mode(node, p.shape(node.inputs[0])), x = p.use(node.inputs[0]);
  const std::string size = braces(node.integers("size"));
  if (mode.empty()) {
    if (is_linear(node)) return p.call("resize_linear", {x, size});
    const bool half = node.word("coordinates") == "half_pixel";
    return p.call("resize_nearest", {x, size, fmt::format("/*half_pixel=*/{}", half)});
  }
  static const std::map<std::string, const char*> kModes = {{"nearest", "kNearest"},
                                                            {"nearest-exact", "kNearestExact"},
                                                            {"linear", "kLinear"},
                                                            {"bilinear", "kBilinear"},
                                                            {"trilinear", "kTrilinear"}};
  std::string options = fmt::format(
      "F::InterpolateFuncOptions().size(std::vector<int64_t>{}).mode(torch::{})", size, kModes.at(mode));
  if (is_linear(node))
    options += fmt::format(".align_corners({})", node.word("coordinates") == "align_corners");
  p.call("F::interpolate", {x, options});
}

void flatten(ForwardPrinter& p, const ir::Node& node) { p.call(p.use(node.inputs[0]) + ".flatten", {"1"}); }

// The batch size is -1 to the IR and to torch alike.
void reshape(ForwardPrinter& p, const ir::Node& node) {
  const ir::Shape& to = node.integers("shape");
  const View view = view_of(p.workload(), node, p.shape(node.inputs[0]));
  const std::string head = p.use(node.inputs[0]) + "." + view.method;
  if (view.axes.empty()) return p.call(head, {braces(to)});
  std::vector<std::string> arguments = {join(view.axes, ", ")};
  if (!view.sizes.empty()) arguments.push_back(braces(view.sizes));
  p.call(head, arguments);
}

void transpose(ForwardPrinter& p, const ir::Node& node) {
  const std::vector<int64_t> swapped = swapped_axes(node.integers("perm"));
  const std::string x = p.use(node.inputs[0]);
  swapped.empty() ? p.call(x + ".permute", {braces(node.integers("perm"))})
                  : p.call(x + ".transpose", {join(swapped, ", ")});
}

void pad(ForwardPrinter& p, const ir::Node& node) {
  const auto& pads = node.integers("pad");
  std::vector<int64_t> reversed = pads_from_last(pads);
  while (reversed.size() > 2 && reversed.back() == 0 && reversed[reversed.size() - 2] == 0) {
    reversed.resize(reversed.size() - 2);
  }
  const double value = node.real("value");
  p.call("torch::constant_pad_nd",
         {p.use(node.inputs[0]), braces(reversed), value == 0 ? "0" : python_real(value)});
}

void concat(ForwardPrinter& p, const ir::Node& node) {
  std::vector<std::string> parts;
  for (const ir::ValueId input : node.inputs) parts.push_back(p.use(input));
  p.call("torch::cat", {fmt::format("{{{}}}", join(parts, ", ")), std::to_string(node.integer("axis"))});
}

void join_values(ForwardPrinter& p, const ir::Node& node) {
  std::vector<std::string> parts;
  for (const ir::ValueId id : node.inputs)
    parts.push_back(p.use(id) + (p.shape(id).size() == 2 ? "" : ".flatten(1)"));
  p.call("torch::cat", {fmt::format("{{{}}}", join(parts, ", ")), "1"});
}

void spelled(ForwardPrinter& p, const ir::Node& node) { p.spelled(node); }
void constant(ForwardPrinter& p, const ir::Node& node) {
  p.fixed(real_literal(node.real("value"), Language::kCpp));
}
void parameter(ForwardPrinter& p, const ir::Node& node) { p.fixed(p.param(node, "weight")); }

void where(ForwardPrinter& p, const ir::Node& node) {
  const std::string condition = p.use(node.inputs[0]), a = p.use(node.inputs[1]);
  p.call("torch::where", {condition, a, p.use(node.inputs[2])});
}

void add(ForwardPrinter& p, const ir::Node& node) { p.sum_or_product(node, '+'); }
void mul(ForwardPrinter& p, const ir::Node& node) { p.sum_or_product(node, '*'); }

// The loss is part of train_step.
void loss(ForwardPrinter&, const ir::Node&) {}

}  // namespace

const OpFunctions<ForwardPrinter>& forward_functions() {
  static const OpFunctions<ForwardPrinter> functions = op_table<ForwardPrinter>(
      {
          {{Op::kConv1d, Op::kConv2d, Op::kConv3d}, conv},
          {{Op::kConvTranspose1d, Op::kConvTranspose2d, Op::kConvTranspose3d}, conv_transpose},
          {{Op::kLinear}, linear},
          {{Op::kBatchNorm}, batch_norm},
          {{Op::kLayerNorm, Op::kRmsNorm}, tail_norm},
          {{Op::kEmbedding}, embedding},
          {{Op::kDropout}, dropout},
          {{Op::kRelu}, relu},
          {{Op::kGelu}, gelu},
          {{Op::kSigmoid}, sigmoid},
          {{Op::kTanh}, tanh},
          {{Op::kSoftmax}, softmax},
          {{Op::kMaxPool1d, Op::kMaxPool2d, Op::kMaxPool3d}, max_pool},
          {{Op::kAvgPool1d, Op::kAvgPool2d, Op::kAvgPool3d}, avg_pool},
          {{Op::kGlobalAvgPool2d}, global_avg_pool2d},
          {{Op::kResize}, resize},
          {{Op::kFlatten}, flatten},
          {{Op::kReshape}, reshape},
          {{Op::kTranspose}, transpose},
          {{Op::kPad}, pad},
          {{Op::kConcat}, concat},
          {{Op::kJoin}, join_values},
          {{Op::kAdd}, add},
          {{Op::kMul}, mul},
          {{Op::kLrn}, lrn},
          {{Op::kPositionEmbedding}, position_embedding},
          {{Op::kAttention}, attention},
          {{Op::kLstm, Op::kGru}, recurrent},
          {{Op::kConstant}, constant},
          {{Op::kParameter}, parameter},
          {{Op::kWhere}, where},
          {kLosses, loss},
          {{Op::kGroupNorm}, group_norm},
      },
      spelled);
  return functions;
}

}  // namespace bakeoff::emit::libtorch
