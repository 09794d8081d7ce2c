// One function for each op, found by the table at the end. TensorFlow has the channels last, so that axes of
// the IR are turned as they are printed. Most of the special cases below are gaps of TensorFlow: kernels that
// exist on a GPU alone, gradients that XLA lacks, pads that an op does not take. Each case says which gap it
// goes around, and op parity runs every op in both ways of execution, which shows when a release has closed
// or opened one.

#include "emit/tensorflow/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/texts.h"
#include "emit/generation.h"
#include "emit/network_ops.h"
#include "emit/resize.h"
#include "emit/windows.h"
#include "ir/op_table.h"

namespace bakeoff::embedded {
const std::vector<File>& tensorflow_helpers();
}

namespace bakeoff::emit::tensorflow {
namespace {

using ir::Node;
using ir::Op;
using Ints = std::vector<int64_t>;

// "[1, 1], [0, 2]"
std::string joined_pairs(const Ints& pads) {
  std::vector<std::string> all;
  for (size_t i = 0; i < pads.size(); i += 2) all.push_back(fmt::format("[{}, {}]", pads[i], pads[i + 1]));
  return join(all, ", ");
}
std::string pair_list(const Ints& pads) { return "[" + joined_pairs(pads) + "]"; }

// Pads of an array with channels last.
std::string pad_list(const Ints& pads) { return "[[0, 0], " + joined_pairs(pads) + ", [0, 0]]"; }

// Explicit padding of N,H,W,C; "VALID" where there is none.
std::string padding(const Ints& pads) { return all_are(pads, 0) ? "\"VALID\"" : pad_list(pads); }

// "2" where all axes have one number.
std::string numbers(const Ints& all) {
  return all_are(all, all[0]) ? std::to_string(all[0]) : python_tuple(all);
}

ir::Shape kernel_of(const Graph& graph, const Node& conv) {
  const ir::Shape& w = graph.workload.parameters[static_cast<size_t>(conv.param("weight"))].shape;
  return {w.begin() + 2, w.end()};
}

// Whether convolutions with pads say "SAME": all or none, so that blocks which differ in their strides stay one class.
bool says_same(const Graph& graph) {
  return std::ranges::all_of(graph.live, [&](int n) {
    const Node& node = graph.workload.nodes[static_cast<size_t>(n)];
    if (!ir::is_conv(node.op) || ir::is_conv_transpose(node.op)) return true;
    const ir::Shape& in = graph.types[static_cast<size_t>(node.inputs[0])].shape;
    return all_are(node.integers("pad"), 0) || pads_as_same(node, in, kernel_of(graph, node));
  });
}

// Of conv1d and conv3d, which take no explicit padding.
std::string simple_padding(const ForwardPrinter& p, const Node& node) {
  return says_same(p.graph()) && !all_are(node.integers("pad"), 0) ? "\"SAME\"" : "\"VALID\"";
}

// The input with zeros around its places, where the convolution does not add them.
std::string padded_input(const ForwardPrinter& p, const Node& node) {
  const Ints& pads = node.integers("pad");
  if (ir::is_conv(node.op) && says_same(p.graph())) return p.input();
  return all_are(pads, 0) ? p.input() : fmt::format("tf.pad({}, {})", p.input(), pad_list(pads));
}

// Convolutions whose gradient TensorFlow's CPU kernels lack.
bool needs_xla(const Node& conv) {
  if (!all_are(conv.integers("dilation"), 1)) return true;
  return conv.integer("groups") != 1 && (conv.op != Op::kConv2d || !native_depthwise(conv));
}

void conv2d(ForwardPrinter& p, const Node& node) {
  const Ints& stride = node.integers("stride");
  const bool depthwise = p.graph().plan.depthwise[static_cast<size_t>(p.index())];
  const bool xla = !depthwise && (needs_xla(node) || node.integer("groups") != 1);
  const Ints& pads = node.integers("pad");
  // TensorFlow joins a depthwise convolution and its bias, and aborts where the pads are listed.
  const bool all_same = says_same(p.graph()) && !all_are(pads, 0),
             listed = !all_same && (!depthwise || !p.has("bias"));
  const bool same = all_same || pads_as_same(node, p.input_shape(), kernel_of(p.graph(), node));
  std::vector<std::string> arguments = {listed || same ? p.input() : padded_input(p, node),
                                        p.param("weight")};
  arguments.push_back(
      option("strides", depthwise ? python_tuple({1, stride[0], stride[1], 1}) : numbers(stride)));
  arguments.push_back(option("padding", listed ? padding(pads) : same ? "\"SAME\"" : "\"VALID\""));
  if (xla) arguments.push_back(option("dilations", python_tuple(node.integers("dilation"))));
  p.assign(xla ? "conv2d_xla" : depthwise ? "tf.nn.depthwise_conv2d" : "tf.nn.conv2d", arguments);
  if (p.has("bias")) p.again_full("tf.nn.bias_add", {p.full_param("bias")});
}

// tf.nn.conv1d and conv3d take no explicit padding.
void conv1d(ForwardPrinter& p, const Node& node) {
  const int64_t stride = node.integers("stride")[0];
  std::vector<std::string> arguments = {padded_input(p, node), p.param("weight"),
                                        option("stride", std::to_string(stride)),
                                        option("padding", simple_padding(p, node))};
  if (needs_xla(node)) arguments.push_back(option("dilations", std::to_string(node.integers("dilation")[0])));
  p.assign(needs_xla(node) ? "conv1d_xla" : "tf.nn.conv1d", arguments);
  if (p.has("bias")) p.again_full("tf.nn.bias_add", {p.full_param("bias")});
}

// tf.nn.conv3d itself has neither dilation nor groups on a CPU.
bool plain_conv3d(const Node& node) {
  return all_are(node.integers("dilation"), 1) && node.integer("groups") == 1;
}

void conv3d(ForwardPrinter& p, const Node& node) {
  const Ints& stride = node.integers("stride");
  std::vector<std::string> arguments = {
      padded_input(p, node), p.param("weight"),
      option("strides", python_tuple({1, stride[0], stride[1], stride[2], 1})),
      option("padding", simple_padding(p, node))};
  if (!plain_conv3d(node)) {
    arguments.push_back(option("dilations", python_tuple(node.integers("dilation"))));
    arguments.push_back(option("groups", std::to_string(node.integer("groups"))));
  }
  p.assign(plain_conv3d(node) ? "tf.nn.conv3d" : "conv3d", arguments);
  if (p.has("bias")) p.again_full("tf.nn.bias_add", {p.full_param("bias")});
}

void conv_transpose(ForwardPrinter& p, const Node& node) {
  const Ints &pad = node.integers("pad"), &dilation = node.integers("dilation");
  Ints size;  // before the pads are cut off
  for (size_t axis = 0; axis < dilation.size(); ++axis)
    size.push_back(p.output_shape()[axis + 2] + pad[2 * axis] + pad[2 * axis + 1]);
  std::vector<std::string> arguments = {p.input(), p.param("weight"), option("size", python_tuple(size)),
                                        option("strides", python_tuple(node.integers("stride")))};
  if (!all_are(pad, 0)) arguments.push_back(option("cut", pair_list(pad)));
  if (!all_are(dilation, 1)) arguments.push_back(option("dilations", python_tuple(dilation)));
  if (node.integer("groups") != 1)
    arguments.push_back(option("groups", std::to_string(node.integer("groups"))));
  arguments.insert(arguments.begin(), fmt::format("tf.nn.conv{}d_transpose", dilation.size()));
  p.assign("conv_transpose", arguments);
  if (p.has("bias")) p.again_full("tf.nn.bias_add", {p.full_param("bias")});
}

void linear(ForwardPrinter& p, const Node&) {
  const std::string x = p.input(), w = p.param("weight");
  const bool table = p.stored_as_table("weight");
  if (p.has("bias") && !table) return p.assign("linear", {x, w, p.full_param("bias")});
  if (p.input_shape().size() == 2) {
    std::vector<std::string> arguments = {x, w};
    if (table) arguments.push_back("transpose_b=True");
    p.assign("tf.matmul", arguments);
  } else {
    p.assign("tf.tensordot", {x, w, option("axes", table ? "(-1, 1)" : "1")});
  }
  if (p.has("bias")) p.again_full("tf.nn.bias_add", {p.full_param("bias")});
}

void batch_norm(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> arguments = {p.input(), p.full_param("weight"), p.full_param("bias"),
                                        p.full_param("mean"), p.full_param("var")};
  if (p.explicit_norms()) {
    arguments.push_back(option("eps", python_real(node.real("eps"))));
    if (!p.graph().predicts) arguments.push_back(option("momentum", python_real(node.real("momentum"))));
  }
  p.assign_full("batch_norm", arguments);
}

void embedding(ForwardPrinter& p, const Node& node) {
  const auto padding = ir::padding_idx(node);
  const bool pads = padding && !p.graph().predicts;
  std::vector<std::string> arguments = {p.full_param("weight"), p.input()};
  if (pads) arguments.push_back(std::to_string(*padding));
  const std::string function = pads ? "padded_embedding" : "tf.nn.embedding_lookup";
  if (!p.mixed() || p.stored_in_half("weight")) return p.assign(function, arguments);
  p.assign("half", {fmt::format("{}({})", function, join(arguments, ", "))});
}

void dropout(ForwardPrinter& p, const Node& node) {
  if (p.graph().predicts) return p.alias();
  p.assign("tf.nn.dropout", {p.input(), option("rate", dropout_constant(p.graph(), node.real("rate")))});
}

void relu(ForwardPrinter& p, const Node&) { p.assign("tf.nn.relu", {p.input()}); }
void sigmoid(ForwardPrinter& p, const Node&) { p.assign("tf.sigmoid", {p.input()}); }
void tanh(ForwardPrinter& p, const Node&) { p.assign("tf.tanh", {p.input()}); }

void gelu(ForwardPrinter& p, const Node& node) {
  p.assign(node.word("form") == "tanh" ? "gelu_tanh" : "gelu", {p.input()});
}

std::vector<std::string> window(ForwardPrinter& p, const Node& node, const std::string& pad_text) {
  const Ints &kernel = node.integers("kernel"), &stride = node.integers("stride");
  const bool tuples = kernel.size() == 3;  // pool3d reads their parts
  return {p.input(), option("ksize", tuples ? python_tuple(kernel) : numbers(kernel)),
          option("strides", tuples ? python_tuple(stride) : numbers(stride)), option("padding", pad_text)};
}

void max_pool2d(ForwardPrinter& p, const Node& node) {
  p.assign("tf.nn.max_pool2d", window(p, node, padding(node.integers("pad"))));
}

// XLA has no max pooling with explicit padding.
void max_pool2d_xla(ForwardPrinter& p, const Node& node) {
  const bool padded = !all_are(node.integers("pad"), 0);
  p.assign(padded ? "max_pool2d" : "tf.nn.max_pool2d", window(p, node, padding(node.integers("pad"))));
}

// tf.nn takes no explicit padding of one axis or three.
void max_pool1d(ForwardPrinter& p, const Node& node) {
  const Ints& pads = node.integers("pad");
  p.assign(all_are(pads, 0) ? "tf.nn.max_pool1d" : "max_pool1d", window(p, node, padding(pads)));
}

// tf.nn's pools along three axes have no float64.
void pool3d(ForwardPrinter& p, const Node& node, const std::string& function, const std::string& filler) {
  const Ints& pads = node.integers("pad");
  std::string x = p.input();
  if (!all_are(pads, 0)) x = fmt::format("tf.pad({}, {}{})", x, pad_list(pads), filler);
  p.assign_full("pool3d", {function, x, option("ksize", python_tuple(node.integers("kernel"))),
                           option("strides", python_tuple(node.integers("stride")))});
}

void max_pool3d(ForwardPrinter& p, const Node& node) {
  pool3d(p, node, "tf.nn.max_pool2d", ", constant_values=float(\"-inf\")");
}

bool counts_real_places(const Node& node) {
  return !all_are(node.integers("pad"), 0) && !node.flag("count_include_pad");
}

void avg_pool3d(ForwardPrinter& p, const Node& node) {
  if (!counts_real_places(node)) return pool3d(p, node, "tf.nn.avg_pool2d", "");
  p.assign_full("avg_pool3d", window(p, node, pad_list(node.integers("pad"))));
}

void avg_pool(ForwardPrinter& p, const Node& node) {
  const bool padded = !all_are(node.integers("pad"), 0);
  std::vector<std::string> arguments = window(p, node, padding(node.integers("pad")));
  if (padded) arguments.push_back(option("count_include_pad", python_bool(node.flag("count_include_pad"))));
  p.assign_full((padded ? "" : "tf.nn.") + ir::info(node.op).name, arguments);
}

void global_avg_pool2d(ForwardPrinter& p, const Node&) {
  p.assign_full("tf.reduce_mean", {p.input(), "axis=(1, 2)"});
}

// How a resize is written.
enum class Resize {
  kImage,     // tf.image.resize, of mode nearest
  kRepeat,    // every place so many times
  kBilinear,  // tf.image.resize, which has no float64
  kProducts,
};

Resize resize_form(const Node& node, const ir::Shape& from, bool xla) {
  if (from.size() == 4 && half_pixel_linear(node)) return Resize::kBilinear;
  // XLA lacks its gradient.
  if (!xla && from.size() == 4 && nearest_is(NearestForm::kTensorFlow, node, from)) return Resize::kImage;
  return whole_factors(node, from).empty() ? Resize::kProducts : Resize::kRepeat;
}

void resize_as(ForwardPrinter& p, const Node& node, bool xla) {
  const std::string x = p.input(), size = python_tuple(node.integers("size"));
  switch (resize_form(node, p.input_shape(), xla)) {
    case Resize::kImage:
      return p.assign("tf.image.resize", {x, size, "\"nearest\""});
    case Resize::kRepeat:
      return p.assign("repeat_places", {x, python_tuple(whole_factors(node, p.input_shape()))});
    case Resize::kBilinear:
      return p.assign_full("resize_bilinear", {x, size});
    case Resize::kProducts:
      break;
  }
  std::vector<std::string> arguments = resize_options(node);
  arguments.insert(arguments.begin(), {x, size});
  is_linear(node) ? p.assign_full("resize", arguments) : p.assign("resize", arguments);
}
void resize(ForwardPrinter& p, const Node& node) { resize_as(p, node, false); }
void resize_xla(ForwardPrinter& p, const Node& node) { resize_as(p, node, true); }

void reshape(ForwardPrinter& p, const Node&) {
  Ints shape = physical_shape(p.gives(), p.output_shape());
  shape[0] = -1;
  const std::string x = p.input();
  const std::vector<std::string> sizes = sizes_of(x, p.input_shape(), shape);
  p.assign("tf.reshape", {x, fmt::format("({}{})", join(sizes, ", "), sizes.size() == 1 ? "," : "")});
}

// Of sizes that differ: a gradient is a sum.
void broadcast(ForwardPrinter& p, const char* function) {
  p.assign_full(function, {p.input(0), fmt::format("tf.cast({}, tf.float32)", p.input(1))});
}

// tf.nn.softmax turns another axis than the last by an order that it computes: within a loop XLA finds no gradient of that.
void softmax(ForwardPrinter& p, const Node& node) {
  const Axes axes = p.axes();
  const auto axis = static_cast<size_t>(axes.at(node.integer("axis")));
  if (!p.traces_loop() || axis + 1 == axes.rank) return emit::softmax(p, node, "tf.nn.softmax");
  std::vector<int64_t> perm(axes.rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[axis], perm.back());
  const std::string order = python_tuple(perm);
  p.assign("tf.nn.softmax", {fmt::format("tf.transpose({}, {})", p.input(), order)});
  p.again("tf.transpose", {order});
}
void transpose(ForwardPrinter& p, const Node& node) { emit::transpose(p, node, "tf.transpose"); }
void pad(ForwardPrinter& p, const Node& node) { emit::pad(p, node, "tf.pad", "[]"); }
void concat(ForwardPrinter& p, const Node& node) { emit::concat(p, node, "tf.concat"); }
void join_values(ForwardPrinter& p, const Node&) { emit::join_values(p, "tf.reshape", "tf.concat"); }
void spelled(ForwardPrinter& p, const Node& node) { p.spelled(ir::spellings(node.op)->tensorflow); }
// Of two branches the first decides the type: a number of Python's would be float32.
void where(ForwardPrinter& p, const Node& node) {
  std::string first = p.input(1);
  if (p.graph().workload.is_constant(node.inputs[1]) && !p.graph().workload.is_constant(node.inputs[2]))
    first = fmt::format("tf.constant({}, {}.dtype)", first, p.input(2));
  p.assign("tf.where", {p.input(0), first, p.input(2)});
}

void add(ForwardPrinter& p, const Node&) {
  if (p.mixed() && p.broadcasts()) return broadcast(p, "tf.add");
  p.assign_flat(p.input(0) + " + " + p.input(1), "tf.add", {p.input(0), p.input(1)});
}

void mul(ForwardPrinter& p, const Node&) {
  if (p.mixed() && p.broadcasts()) return broadcast(p, "tf.multiply");
  p.assign_flat(p.input(0) + " * " + p.input(1), "tf.multiply", {p.input(0), p.input(1)});
}

// A weight of a linear layer or an LSTM as I,O.
std::string stored_weight(const ForwardPrinter& p, std::string_view slot) {
  return p.stored_as_table(slot) ? fmt::format("tf.transpose({})", p.full_param(slot)) : p.full_param(slot);
}

void position_embedding(ForwardPrinter& p, const Node&) { emit::position_embedding(p, "tf.add"); }

void attention(ForwardPrinter& p, const Node& node) { emit::attention(p, node); }

void recurrent(ForwardPrinter& p, const Node&) {
  emit::recurrent(p, stored_weight(p, "weight_ih"), stored_weight(p, "weight_hh"));
}

void nothing(ForwardPrinter&, const Node&) {}  // losses are printed by loss_fn

}  // namespace

bool linear_of_rows(const Graph& graph) {
  return std::ranges::all_of(graph.live, [&](int n) {
    const Node& node = graph.workload.nodes[static_cast<size_t>(n)];
    return node.op != Op::kLinear || graph.types[static_cast<size_t>(node.inputs[0])].shape.size() == 2;
  });
}

bool native_depthwise(const Node& conv) {
  const Ints& stride = conv.integers("stride");
  return conv.integers("dilation") == Ints{1, 1} && stride[0] == stride[1];
}

OpFunctions<ForwardPrinter> op_functions(bool xla) {
  return op_table<ForwardPrinter>(
      {
          {{Op::kConv1d}, conv1d},
          {{Op::kConv2d}, conv2d},
          {{Op::kConv3d}, conv3d},
          {{Op::kConvTranspose1d, Op::kConvTranspose2d, Op::kConvTranspose3d}, conv_transpose},
          {{Op::kLinear}, linear},
          {{Op::kBatchNorm}, batch_norm},
          {{Op::kLayerNorm}, layer_norm},
          {{Op::kRmsNorm}, rms_norm},
          {{Op::kEmbedding}, embedding},
          {{Op::kDropout}, dropout},
          {{Op::kRelu}, relu},
          {{Op::kGelu}, gelu},
          {{Op::kSigmoid}, sigmoid},
          {{Op::kTanh}, tanh},
          {{Op::kSoftmax}, softmax},
          {{Op::kMaxPool1d}, max_pool1d},
          {{Op::kMaxPool2d}, xla ? max_pool2d_xla : max_pool2d},
          {{Op::kMaxPool3d}, max_pool3d},
          {{Op::kAvgPool1d, Op::kAvgPool2d}, avg_pool},
          {{Op::kAvgPool3d}, avg_pool3d},
          {{Op::kGlobalAvgPool2d}, global_avg_pool2d},
          {{Op::kResize}, xla ? resize_xla : resize},
          {{Op::kFlatten, Op::kReshape}, reshape},
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
          {kLosses, nothing},
          {{Op::kGroupNorm}, group_norm},
      },
      spelled);
}

const Helpers& helpers() {
  static const Helpers all(embedded::tensorflow_helpers(), Helpers::Copy::kAsCalled);
  return all;
}

void print_loss(CodeWriter& out, const Node& loss, const std::string& prediction, const std::string& given,
                const std::string& variable) {
  const bool mean = loss.word("reduction") == "mean";
  const auto ignored = ir::ignore_index(loss);
  const std::string result = variable.empty() ? "return " : variable + " = ";
  std::string call = ir::loss_spelling(loss.op).tensorflow, target = given;
  if (ignored) {
    out.line(fmt::format("kept = tf.not_equal({}, {})", target, *ignored));
    target = fmt::format("tf.where(kept, {}, 0)", target);
  }
  if (const double smooth = ir::label_smoothing(loss); smooth != 0) {
    const std::string classes = prediction + ".shape[-1]", rate = python_real(smooth);
    out.call("smoothed = tf.one_hot",
             {target, classes, fmt::format("1 - {0} + {0} / {1}", rate, classes),
              fmt::format("{} / {}", rate, classes), fmt::format("dtype={}.dtype", prediction)});
    call = "tf.nn.softmax_cross_entropy_with_logits(labels=smoothed, logits={0})";
  }
  const Spelled losses = spell({.call = call}, {}, {prediction, target});
  out.call("losses = " + losses.head, losses.arguments);
  if (!ignored) return out.line(fmt::format("{}tf.reduce_{}(losses)", result, loss.word("reduction")));
  out.line("losses = tf.where(kept, losses, tf.zeros_like(losses))");
  if (!mean) return out.line(result + "tf.reduce_sum(losses)");
  out.line("count = tf.math.count_nonzero(kept, dtype=losses.dtype)");
  out.line(result + "tf.reduce_sum(losses) / tf.maximum(count, 1)");
}

std::set<std::string> reserved_names() {
  std::set<std::string> names = helpers().names();
  names.merge(words(
      "weights prefix block tf np self model optimizer tape loss losses smoothed kept count gradients variables prediction target path data "
      "arrays os sys PROCESS GPUS json argparse itertools Path load_file save_file load_data load_weights batches loss_fn train_step "
      "make_model make_optimizer math PROMPT WORDS likeliest generate decode_step step_of predict_step DEVICES KIND STRATEGY split_rows compiled functools train predict output l I O BATCH_SIZE LEARNING_RATE "
      "WARMUP_STEPS WARMUP_FROM DECAY_STEPS FINAL_SHARE STEP_EVERY STEP_FACTOR CLIP_NORM CLIP_VALUE EMA_DECAY ACCUMULATE NO_DECAY learning_rate"));
  return names;
}

}  // namespace bakeoff::emit::tensorflow
