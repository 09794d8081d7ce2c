// One function for each op, found by the table at the end: it prints a call of jax.numpy, or of a helper
// where jax.lax wants its arguments in a form that nobody reads at a glance (dimension numbers of a
// convolution, reducers of a pool). A script gets the helpers that it calls and no others. Arguments that
// equal a helper's defaults are left out, except in a block, where one function serves blocks whose arguments
// differ.

#include "emit/jax/ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "emit/generation.h"
#include "emit/jax/optimizer.h"
#include "emit/network_ops.h"
#include "emit/resize.h"
#include "emit/windows.h"
#include "ir/op_table.h"

namespace bakeoff::embedded {
const std::vector<File>& jax_helpers();
}

namespace bakeoff::emit::jax {
namespace {

using ir::Node;
using ir::Op;
using Ints = std::vector<int64_t>;

// "((top, bottom), (left, right))"
std::string pairs(const Ints& pads) {
  std::vector<std::string> all;
  for (size_t i = 0; i < pads.size(); i += 2) all.push_back(fmt::format("({}, {})", pads[i], pads[i + 1]));
  return fmt::format("({}{})", join(all, ", "), all.size() == 1 ? "," : "");
}

void conv(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> arguments = {p.input(), p.param("weight")};
  if (p.has("bias")) arguments.push_back(p.full_param("bias"));
  const bool even = even_convolutions(p.graph());
  const auto number = [&](const char* name) { return std::to_string(node.integers(name)[0]); };
  arguments.push_back(option("stride", even ? number("stride") : python_tuple(node.integers("stride"))));
  arguments.push_back(option("padding", even ? number("pad") : pairs(node.integers("pad"))));
  // In a block, what other blocks of the family say must be said.
  if (p.stretch().path.empty()) leave_out_fallbacks(arguments);
  if (!all_are(node.integers("dilation"), 1)) {
    arguments.push_back(option("dilation", python_tuple(node.integers("dilation"))));
  }
  if (node.integer("groups") != 1)
    arguments.push_back(option("groups", std::to_string(node.integer("groups"))));
  p.assign(ir::info(node.op).name, arguments);
}

void conv_transpose(ForwardPrinter& p, const Node& node) {
  const Ints &pad = node.integers("pad"), &dilation = node.integers("dilation");
  const Ints& extra = node.integers("output_pad");
  const ir::Shape& w = p.graph().workload.parameters[static_cast<size_t>(node.param("weight"))].shape;
  Ints around;  // of the stretched input
  for (size_t axis = 0; axis < extra.size(); ++axis) {
    const int64_t reach = dilation[axis] * (w[axis + 2] - 1);
    around.insert(around.end(), {reach - pad[2 * axis], reach - pad[2 * axis + 1] + extra[axis]});
  }
  std::vector<std::string> arguments = {p.input(), p.param("weight")};
  if (p.has("bias")) arguments.push_back(p.full_param("bias"));
  arguments.push_back(option("stride", python_tuple(node.integers("stride"))));
  arguments.push_back(option("padding", pairs(around)));
  if (!all_are(dilation, 1)) arguments.push_back(option("dilation", python_tuple(dilation)));
  if (node.integer("groups") != 1)
    arguments.push_back(option("groups", std::to_string(node.integer("groups"))));
  p.assign("conv_transpose", arguments);
}

void linear(ForwardPrinter& p, const Node&) {
  const std::string x = p.input(), w = p.param("weight") + (p.stored_as_table("weight") ? ".T" : "");
  if (!p.has("bias")) return p.assign_flat(x + " @ " + w, "jnp.matmul", {x, w});
  p.assign("linear", {x, w, p.full_param("bias")});
}

void batch_norm(ForwardPrinter& p, const Node& node) {
  // Of params["bn1.running_mean"] the key.
  const auto quoted = [&](const char* slot) {
    const std::string held = p.full_param(slot);
    return held.substr(held.find('[') + 1, held.size() - held.find('[') - 2);
  };
  std::vector<std::string> arguments = {p.input(), p.full_param("weight"), p.full_param("bias")};
  const bool predicts = p.graph().predicts;
  if (!predicts) arguments.push_back("stats");
  for (const char* slot : {"mean", "var"}) arguments.push_back(predicts ? p.full_param(slot) : quoted(slot));
  if (p.explicit_norms()) {
    arguments.push_back(option("eps", python_real(node.real("eps"))));
    if (!predicts) arguments.push_back(option("momentum", python_real(node.real("momentum"))));
  }
  p.assign_full("batch_norm", arguments);
}

void embedding(ForwardPrinter& p, const Node& node) {
  const auto padding = ir::padding_idx(node);
  const std::string ids = p.input(), table = p.full_param("weight");
  const bool pads = padding && !p.graph().predicts;
  const std::string rows =
      pads ? fmt::format("padded_embedding({}, {}, {})", table, ids, *padding) : table + "[" + ids + "]";
  const bool rounds = p.mixed() && !p.stored_in_half("weight");
  if (pads && !rounds) return p.assign("padded_embedding", {table, ids, std::to_string(*padding)});
  if (rounds) return p.assign("half", {rows});
  p.assign_flat(rows, "jnp.take", {table, ids, "axis=0"});
}

// What draws the mask of the node in print.
std::string mask_key(const ForwardPrinter& p) {
  const bool one = dropouts(p.graph(), 0, static_cast<int>(p.graph().workload.nodes.size())) == 1;
  return one ? "key" : fmt::format("keys[{}]", p.dropout_number());
}

void dropout(ForwardPrinter& p, const Node& node) {
  if (p.graph().predicts) return p.alias();
  p.assign("dropout", {mask_key(p), p.input(), dropout_constant(p.graph(), node.real("rate"))});
}

// jax.vmap over the heads of a group would draw one mask for all of them.
void attention(ForwardPrinter& p, const Node& node) { emit::attention(p, node, mask_key(p), "jnp.repeat"); }

void relu(ForwardPrinter& p, const Node&) { p.assign("jax.nn.relu", {p.input()}); }
void sigmoid(ForwardPrinter& p, const Node&) { p.assign("jax.nn.sigmoid", {p.input()}); }
void tanh(ForwardPrinter& p, const Node&) { p.assign("jnp.tanh", {p.input()}); }

void gelu(ForwardPrinter& p, const Node& node) {
  p.assign("jax.nn.gelu", {p.input(), option("approximate", python_bool(node.word("form") == "tanh"))});
}

std::vector<std::string> window(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> all = {p.input(), option("window", python_tuple(node.integers("kernel"))),
                                  option("stride", python_tuple(node.integers("stride")))};
  if (const Ints& pad = node.integers("pad"); !all_are(pad, 0)) all.push_back(option("padding", pairs(pad)));
  return all;
}

void max_pool(ForwardPrinter& p, const Node& node) { p.assign(ir::info(node.op).name, window(p, node)); }

void avg_pool(ForwardPrinter& p, const Node& node) {
  auto arguments = window(p, node);
  if (node.flag("count_include_pad") && !all_are(node.integers("pad"), 0))
    arguments.push_back(option("count_include_pad", "True"));
  p.assign_full(ir::info(node.op).name, arguments);
}

// jnp.mean adds up in float32 by itself.
void global_avg_pool2d(ForwardPrinter& p, const Node&) { p.assign("jnp.mean", {p.input(), "axis=(1, 2)"}); }

// jax.image.resize does what the node does.
bool native_resize(const Node& node, const ir::Shape& from) {
  return half_pixel_linear(node) || nearest_is(NearestForm::kJax, node, from);
}

void resize(ForwardPrinter& p, const Node& node) {
  const std::string x = p.input(), size = join(node.integers("size"), ", ");
  const bool linear = is_linear(node);
  std::string head = "jax.image.resize";
  std::vector<std::string> arguments = {x,
                                        fmt::format("({0}.shape[0], {1}, {2})", x, size, p.input_shape()[1]),
                                        linear ? "\"linear\"" : "\"nearest\""};
  if (linear) arguments.push_back("antialias=False");
  if (!native_resize(node, p.input_shape())) {
    head = "resize";
    arguments = resize_options(node);
    arguments.insert(arguments.begin(), {x, python_tuple(node.integers("size"))});
  }
  linear ? p.assign_full(head, arguments) : p.assign(head, arguments);
}

void reshape(ForwardPrinter& p, const Node&) {
  const std::string x = p.input();
  const ir::Shape from = physical_shape(p.reads(), p.input_shape());
  const ir::Shape shape = physical_shape(p.gives(), p.output_shape());
  const bool rows = shape[0] == ir::kBatch && !x.ends_with(")");
  const bool rows_stay = rows && ir::product(from, 1, from.size()) == ir::product(shape, 1, shape.size());
  const auto alike =
      std::mismatch(shape.begin(), shape.end(), from.begin(), from.end()).first - shape.begin();
  const auto kept = rows_stay && alike > 1 ? alike : 1;  // axes that stay, rows are the first
  std::vector<std::string> arguments = {!rows       ? "-1"
                                        : kept == 1 ? x + ".shape[0]"
                                                    : fmt::format("*{}.shape[:{}]", x, kept)};
  const std::vector<std::string> sizes = sizes_of(x, p.input_shape(), shape);
  arguments.insert(arguments.end(), sizes.begin() + kept, sizes.end());
  p.assign(x + ".reshape", arguments);
}

void softmax(ForwardPrinter& p, const Node& node) { emit::softmax(p, node, "jax.nn.softmax"); }
void transpose(ForwardPrinter& p, const Node& node) { emit::transpose(p, node, "jnp.transpose"); }
void pad(ForwardPrinter& p, const Node& node) { emit::pad(p, node, "jnp.pad", "()"); }
void concat(ForwardPrinter& p, const Node& node) { emit::concat(p, node, "jnp.concatenate"); }
void join_values(ForwardPrinter& p, const Node&) { emit::join_values(p, "jnp.reshape", "jnp.concatenate"); }
void spelled(ForwardPrinter& p, const Node& node) { p.spelled(ir::spellings(node.op)->jax); }
void where(ForwardPrinter& p, const Node&) { p.assign("jnp.where", {p.input(0), p.input(1), p.input(2)}); }

void add(ForwardPrinter& p, const Node&) {
  if (p.mixed() && p.broadcasts()) return p.assign_full("jnp.add", {p.input(0), p.input(1)});
  p.assign_flat(p.input(0) + " + " + p.input(1), "jnp.add", {p.input(0), p.input(1)});
}

void mul(ForwardPrinter& p, const Node&) {
  if (p.mixed() && p.broadcasts()) return p.assign_full("jnp.multiply", {p.input(0), p.input(1)});
  p.assign_flat(p.input(0) + " * " + p.input(1), "jnp.multiply", {p.input(0), p.input(1)});
}

// A weight of a linear layer or an LSTM as I,O.
std::string stored_weight(const ForwardPrinter& p, std::string_view slot) {
  return p.full_param(slot) + (p.stored_as_table(slot) ? ".T" : "");
}

void position_embedding(ForwardPrinter& p, const Node&) { emit::position_embedding(p, "jnp.add"); }

void recurrent(ForwardPrinter& p, const Node&) {
  emit::recurrent(p, stored_weight(p, "weight_ih"), stored_weight(p, "weight_hh"));
}

void nothing(ForwardPrinter&, const Node&) {}  // losses are printed by loss_fn

}  // namespace

const OpFunctions<ForwardPrinter>& op_functions() {
  static const OpFunctions<ForwardPrinter> table = op_table<ForwardPrinter>(
      {
          {{Op::kConv1d, Op::kConv2d, Op::kConv3d}, conv},
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
          {{Op::kMaxPool1d, Op::kMaxPool2d, Op::kMaxPool3d}, max_pool},
          {{Op::kAvgPool1d, Op::kAvgPool2d, Op::kAvgPool3d}, avg_pool},
          {{Op::kGlobalAvgPool2d}, global_avg_pool2d},
          {{Op::kResize}, resize},
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
  return table;
}

bool even_convolutions(const Graph& graph) {
  return std::ranges::all_of(graph.live, [&](int n) {
    const Node& node = graph.workload.nodes[static_cast<size_t>(n)];
    if (!ir::is_conv(node.op) || ir::is_conv_transpose(node.op)) return true;
    const Ints &stride = node.integers("stride"), &pad = node.integers("pad");
    return all_are(stride, stride[0]) && all_are(pad, pad[0]) && all_are(node.integers("dilation"), 1);
  });
}

const Helpers& helpers() {
  static const Helpers all(embedded::jax_helpers(), Helpers::Copy::kAsCalled);
  return all;
}

void print_loss(CodeWriter& out, const Node& loss, const std::string& prediction, const std::string& given,
                const std::string& variable) {
  const bool mean = loss.word("reduction") == "mean";
  const auto ignored = ir::ignore_index(loss);
  std::string call = ir::loss_spelling(loss.op).jax, target = given;
  if (ignored) {
    out.line(fmt::format("kept = {} != {}", target, *ignored));
    target = fmt::format("jnp.where(kept, {}, 0)", target);
  }
  if (const double smooth = ir::label_smoothing(loss); smooth != 0) {
    out.call("smoothed = jax.nn.one_hot",
             {target, prediction + ".shape[-1]", fmt::format("dtype={}.dtype", prediction)});
    out.line(fmt::format("smoothed = optax.smooth_labels(smoothed, {})", python_real(smooth)));
    call = "optax.softmax_cross_entropy({0}, smoothed)";
  }
  const Spelled losses = spell({.call = call}, {}, {prediction, target});
  out.call("losses = " + losses.head, losses.arguments);
  if (!ignored) return out.line(fmt::format("{} = losses.{}()", variable, mean ? "mean" : "sum"));
  out.line(
      fmt::format("{} = losses.sum(where=kept){}", variable, mean ? " / jnp.maximum(kept.sum(), 1)" : ""));
}

std::set<std::string> reserved_names() {
  std::set<std::string> names = helpers().names();
  names.merge(optimizer_names());
  names.merge(words(
      "params prefix i stats key keys state opt_state loss data path np jax jnp lax optax forward loss_fn train_step batches load_data load_weights load_file save_file prediction target losses smoothed kept l "
      "I O json argparse itertools partial Path NamedTuple Any TrainState init_params init_state "
      "make_optimizer grads updates BATCH_SIZE LEARNING_RATE OPTIMIZER dropout_key metrics arrays "
      "os sys split_rows DEVICES MESH BY_ROWS REPLICATED split_over_devices AxisType NamedSharding PartitionSpec predict_step output PROMPT WORDS cache likeliest generate decode_step empty_cache "
      "WARMUP_STEPS WARMUP_FROM DECAY_STEPS FINAL_SHARE STEP_EVERY STEP_FACTOR CLIP_NORM CLIP_VALUE EMA_DECAY ACCUMULATE NO_DECAY learning_rate"));
  return names;
}

}  // namespace bakeoff::emit::jax
