// One function for each op, found by the table at the end: it prints the call that a person would write. A
// layer whose parameters are those of an nn module is that module's call, else the function of
// torch.nn.functional with its weights as arguments. Pads that differ between two sides are an F.pad before
// the call, as torch's own layers take one number for both; options that equal torch's defaults are left out
// by the printer.

#include "emit/torch/ops.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/generation.h"
#include "emit/resize.h"
#include "emit/spelling.h"
#include "emit/torch/network_ops.h"
#include "emit/windows.h"
#include "ir/op_table.h"

namespace bakeoff::emit::torch {
namespace {

using ir::Op;

std::string padded(const std::string& x, const std::vector<int64_t>& pad, const std::string& value = "") {
  return fmt::format("F.pad({}, {}{})", x, python_tuple(pads_from_last(pad)),
                     value.empty() ? "" : ", value=" + value);
}

void conv(ForwardPrinter& p, const ir::Node& node) {
  const auto& pad = node.integers("pad");
  std::string x = p.use(node.inputs[0]);
  std::vector<std::string> options = {"stride=" + per_axis(node.integers("stride"))};
  if (!symmetric(pad)) {
    x = padded(x, pad);
  } else if (!all_are(pad, 0)) {
    options.push_back("padding=" + per_axis(pads_of_side(pad, false)));
  }
  options.push_back("dilation=" + per_axis(node.integers("dilation")));
  options.push_back(fmt::format("groups={}", node.integer("groups")));
  p.layer(node, x, "F." + ir::info(node.op).name, {"weight", "bias"}, options);
}

void conv_transpose(ForwardPrinter& p, const ir::Node& node) {
  const auto& pad = node.integers("pad");
  std::vector<std::string> options = {"stride=" + per_axis(node.integers("stride"))};
  if (symmetric(pad) && !all_are(pad, 0)) options.push_back("padding=" + per_axis(pads_of_side(pad, false)));
  if (!all_are(node.integers("output_pad"), 0))
    options.push_back("output_padding=" + per_axis(node.integers("output_pad")));
  options.push_back(fmt::format("groups={}", node.integer("groups")));
  options.push_back("dilation=" + per_axis(node.integers("dilation")));
  p.layer(node, p.use(node.inputs[0]), "F." + ir::info(node.op).name, {"weight", "bias"}, options);
  if (symmetric(pad)) return;
  std::vector<int64_t> cut = pads_from_last(pad);  // torch itself cuts evenly only
  for (int64_t& n : cut) n = -n;
  p.around("F.pad", {python_tuple(cut)});
}

void linear(ForwardPrinter& p, const ir::Node& node) {
  p.layer(node, p.use(node.inputs[0]), "F.linear", {"weight", "bias"}, {});
}

void batch_norm(ForwardPrinter& p, const ir::Node& node) {
  p.layer(node, p.use(node.inputs[0]), "F.batch_norm", {"mean", "var", "weight", "bias"},
          {"training=self.training", "momentum=" + python_real(node.real("momentum")),
           "eps=" + python_real(node.real("eps"))});
}

// The module, or function(x, `sizes`, weight=..., bias=..., eps=...).
void norm(ForwardPrinter& p, const ir::Node& node, const std::string& function, const std::string& sizes) {
  const std::string x = p.use(node.inputs[0]);
  if (const std::string module = p.module_of(node); !module.empty()) return p.call(module, {x});
  std::vector<std::string> arguments = {x, sizes};
  for (const char* slot : {"weight", "bias"}) {
    if (node.has(slot)) arguments.push_back(std::string(slot) + "=" + p.parameter(node, slot));
  }
  if (node.op == Op::kGroupNorm && node.has("bias") && !node.has("weight"))  // torch 2.13 fails in backward
    arguments.push_back("weight=torch.ones_like(" + p.parameter(node, "bias") + ")");
  arguments.push_back("eps=" + python_real(node.real("eps")));
  p.call(function, arguments);
}

void tail_norm(ForwardPrinter& p, const ir::Node& node) {
  const ir::Shape& x = p.shape(node.inputs[0]);
  const ir::Shape tail(x.end() - node.integer("dims"), x.end());
  norm(p, node, "F." + ir::info(node.op).name, "normalized_shape=" + python_tuple(tail));
}

void group_norm(ForwardPrinter& p, const ir::Node& node) {
  norm(p, node, "F.group_norm", std::to_string(node.integer("groups")));
}

void embedding(ForwardPrinter& p, const ir::Node& node) {
  const auto row = ir::padding_idx(node);
  p.layer(node, p.use(node.inputs[0]), "F.embedding", {"weight"},
          row ? std::vector{fmt::format("padding_idx={}", *row)} : std::vector<std::string>());
}

void dropout(ForwardPrinter& p, const ir::Node& node) { p.layer(node, p.use(node.inputs[0]), "", {}, {}); }

void relu(ForwardPrinter& p, const ir::Node& node) { p.call("F.relu", {p.use(node.inputs[0])}); }
void sigmoid(ForwardPrinter& p, const ir::Node& node) { p.call("torch.sigmoid", {p.use(node.inputs[0])}); }
void tanh(ForwardPrinter& p, const ir::Node& node) { p.call("torch.tanh", {p.use(node.inputs[0])}); }

void gelu(ForwardPrinter& p, const ir::Node& node) {
  std::vector<std::string> arguments = {p.use(node.inputs[0])};
  if (node.word("form") == "tanh") arguments.emplace_back("approximate=\"tanh\"");
  p.call("F.gelu", arguments);
}

void softmax(ForwardPrinter& p, const ir::Node& node) {
  p.call("F.softmax", {p.use(node.inputs[0]), fmt::format("dim={}", node.integer("axis"))});
}

// `tail`: options after the padding.
void pool(ForwardPrinter& p, const ir::Node& node, const std::string& filler,
          const std::vector<std::string>& tail) {
  const auto &kernel = node.integers("kernel"), &stride = node.integers("stride"),
             &pad = node.integers("pad");
  std::string x = p.use(node.inputs[0]);
  if (!symmetric(pad)) x = padded(x, pad, filler);
  std::vector<std::string> arguments = {x, per_axis(kernel)};
  if (stride != kernel) arguments.push_back("stride=" + per_axis(stride));
  if (symmetric(pad) && !all_are(pad, 0)) {
    arguments.push_back("padding=" + per_axis(pads_of_side(pad, false)));
    arguments.insert(arguments.end(), tail.begin(), tail.end());
  }
  p.call("F." + ir::info(node.op).name, arguments);
}

void max_pool(ForwardPrinter& p, const ir::Node& node) { pool(p, node, "float(\"-inf\")", {}); }

void avg_pool(ForwardPrinter& p, const ir::Node& node) {
  const auto& pad = node.integers("pad");
  const bool count = node.flag("count_include_pad");
  if (symmetric(pad) || count) return pool(p, node, "", {"count_include_pad=" + python_bool(count)});
  p.call(ir::info(node.op).name + "_uneven",
         {p.use(node.inputs[0]), per_axis(node.integers("kernel")), per_axis(node.integers("stride")),
          python_tuple(pads_from_last(pad))});
}

void global_avg_pool2d(ForwardPrinter& p, const ir::Node& node) {
  p.call(p.use(node.inputs[0]) + ".mean", {"dim=(2, 3)"});
}

// 2 where every axis becomes twice as long, and so on: powers of two, which torch divides by exactly.
int64_t scale_factor(const ir::Node& node, const ir::Shape& from) {
  const auto& size = node.integers("size");
  const int64_t factor = size[0] / from[2];
  for (size_t axis = 0; axis < size.size(); ++axis) {
    if (size[axis] != factor * from[axis + 2]) return 0;
  }
  return (factor & (factor - 1)) == 0 ? factor : 0;
}

void resize(ForwardPrinter& p, const ir::Node& node) {
  const ir::Shape from = p.shape(node.inputs[0]);
  const std::string mode = interpolate_mode(node, from), x = p.use(node.inputs[0]);
  const std::string size = "size=" + python_tuple(node.integers("size"));
  if (mode.empty()) {
    std::vector<std::string> arguments = {x, size};
    const auto options = resize_options(node);
    arguments.insert(arguments.end(), options.begin(), options.end());
    return p.call("resize", arguments);
  }
  const bool corners = node.word("coordinates") == "align_corners";
  const int64_t factor = corners ? 0 : scale_factor(node, from);
  std::vector<std::string> arguments = {x, factor > 0 ? fmt::format("scale_factor={}", factor) : size,
                                        "mode=\"" + mode + "\""};
  if (is_linear(node)) arguments.push_back("align_corners=" + python_bool(corners));
  p.call("F.interpolate", arguments);
}

void flatten(ForwardPrinter& p, const ir::Node& node) { p.call(p.use(node.inputs[0]) + ".flatten", {"1"}); }

std::vector<std::string> texts(const std::vector<int64_t>& numbers) {
  std::vector<std::string> all;
  for (const int64_t n : numbers) all.push_back(std::to_string(n));
  return all;
}

// The batch size is -1 to the IR and to torch alike.
void reshape(ForwardPrinter& p, const ir::Node& node) {
  const ir::Shape &from = p.shape(node.inputs[0]), &to = node.integers("shape");
  const std::string x = p.use(node.inputs[0]);
  const View view = view_of(p.request().workload, node, from);
  std::vector<std::string> arguments = texts(view.axes);
  if (!view.sizes.empty()) arguments.push_back(python_tuple(view.sizes));
  p.call(x + "." + view.method, view.axes.empty() ? sizes_of(x, from, to) : arguments);
}

void transpose(ForwardPrinter& p, const ir::Node& node) {
  if (p.leaves_to_attention(node)) return;
  const std::vector<int64_t> swapped = swapped_axes(node.integers("perm"));
  const std::string x = p.use(node.inputs[0]);
  swapped.empty() ? p.call(x + ".permute", texts(node.integers("perm")))
                  : p.call(x + ".transpose", texts(swapped));
}

void pad(ForwardPrinter& p, const ir::Node& node) {
  const auto& pads = node.integers("pad");
  std::vector<int64_t> reversed = pads_from_last(pads);
  while (reversed.size() > 2 && reversed.back() == 0 && reversed[reversed.size() - 2] == 0) {
    reversed.resize(reversed.size() - 2);
  }
  std::vector<std::string> arguments = {p.use(node.inputs[0]), python_tuple(reversed)};
  if (node.real("value") != 0) arguments.push_back("value=" + python_real(node.real("value")));
  p.call("F.pad", arguments);
}

void concat(ForwardPrinter& p, const ir::Node& node) {
  std::vector<std::string> parts;
  for (const ir::ValueId input : node.inputs) parts.push_back(p.use(input));
  p.call("torch.cat", {fmt::format("({})", join(parts, ", ")), fmt::format("dim={}", node.integer("axis"))});
}

// forward() of a model that predicts returns the values one by one.
void join_values(ForwardPrinter& p, const ir::Node& node) {
  if (p.returns(node)) return;
  std::vector<std::string> parts;
  for (const ir::ValueId id : node.inputs)
    parts.push_back(p.use(id) + (p.shape(id).size() == 2 ? "" : ".flatten(1)"));
  p.call("torch.cat", {fmt::format("({})", join(parts, ", ")), "dim=1"});
}

void spelled(ForwardPrinter& p, const ir::Node& node) { p.spelled(node); }
void constant(ForwardPrinter& p, const ir::Node& node) { p.fixed(real_literal(node.real("value"))); }
void parameter(ForwardPrinter& p, const ir::Node& node) { p.fixed(p.parameter(node, "weight")); }

void where(ForwardPrinter& p, const ir::Node& node) {
  const std::string condition = p.use(node.inputs[0]), a = p.use(node.inputs[1]);
  p.call("torch.where", {condition, a, p.use(node.inputs[2])});
}

void add(ForwardPrinter& p, const ir::Node& node) { p.sum_or_product(node, "+", "torch.add"); }
void mul(ForwardPrinter& p, const ir::Node& node) { p.sum_or_product(node, "*", "torch.mul"); }

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

}  // namespace bakeoff::emit::torch
