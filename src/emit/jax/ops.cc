#include "emit/jax/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/texts.h"
#include "emit/jax/network_ops.h"
#include "emit/resize.h"
#include "emit/windows.h"
#include "ir/op_table.h"

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

std::string option(const char* name, const std::string& value) { return fmt::format("{}={}", name, value); }

void conv(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> arguments = {p.input(), p.param("weight")};
  if (p.has("bias")) arguments.push_back(p.full_param("bias"));
  arguments.push_back(option("stride", python_tuple(node.integers("stride"))));
  arguments.push_back(option("padding", pairs(node.integers("pad"))));
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
  p.assign(ir::info(node.op).name, arguments);
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

// The input and the parameters of a norm.
std::vector<std::string> affine(ForwardPrinter& p) {
  std::vector<std::string> arguments = {p.input()};
  if (p.has("weight")) arguments.push_back(p.full_param("weight"));
  if (p.has("bias")) arguments.push_back((p.has("weight") ? "" : "shift=") + p.full_param("bias"));
  return arguments;
}

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

void embedding(ForwardPrinter& p, const Node&) {
  const std::string ids = p.input(), table = p.full_param("weight"), rows = table + "[" + ids + "]";
  if (p.mixed()) return p.assign("half", {rows});
  p.assign_flat(rows, "jnp.take", {table, ids, "axis=0"});
}

void dropout(ForwardPrinter& p, const Node& node) {
  if (p.graph().predicts) return p.alias();
  const bool one = dropouts(p.graph(), 0, static_cast<int>(p.graph().workload.nodes.size())) == 1;
  const std::string key =
      one ? "key" : fmt::format("keys[{}]", dropouts(p.graph(), p.stretch().first, p.index()));
  p.assign("dropout", {key, p.input(), dropout_constant(p.graph(), node.real("rate"))});
}

void relu(ForwardPrinter& p, const Node&) { p.assign("jax.nn.relu", {p.input()}); }
void sigmoid(ForwardPrinter& p, const Node&) { p.assign("jax.nn.sigmoid", {p.input()}); }
void tanh(ForwardPrinter& p, const Node&) { p.assign("jnp.tanh", {p.input()}); }

void gelu(ForwardPrinter& p, const Node& node) {
  p.assign("jax.nn.gelu", {p.input(), option("approximate", python_bool(node.word("form") == "tanh"))});
}

void softmax(ForwardPrinter& p, const Node& node) {
  const int64_t axis = p.axes().at(node.integer("axis"));
  p.assign_full("jax.nn.softmax", {p.input(), option("axis", std::to_string(axis))});
}

std::vector<std::string> window(ForwardPrinter& p, const Node& node) {
  return {p.input(), option("window", python_tuple(node.integers("kernel"))),
          option("stride", python_tuple(node.integers("stride"))),
          option("padding", pairs(node.integers("pad")))};
}

void max_pool(ForwardPrinter& p, const Node& node) { p.assign(ir::info(node.op).name, window(p, node)); }

void avg_pool(ForwardPrinter& p, const Node& node) {
  auto arguments = window(p, node);
  arguments.push_back(option("count_include_pad", python_bool(node.flag("count_include_pad"))));
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
  const ir::Shape shape = physical_shape(p.gives(), p.output_shape());
  const bool rows = shape[0] == ir::kBatch && !x.ends_with(")");
  std::vector<std::string> arguments = {rows ? x + ".shape[0]" : "-1"};
  for (size_t axis = 1; axis < shape.size(); ++axis) arguments.push_back(std::to_string(shape[axis]));
  p.assign(x + ".reshape", arguments);
}

void transpose(ForwardPrinter& p, const Node& node) {
  const Ints perm = physical_perm(p.reads(), p.gives(), node.integers("perm"));
  if (is_identity(perm)) return p.alias();
  p.assign("jnp.transpose", {p.input(), python_tuple(perm)});
}

void pad(ForwardPrinter& p, const Node& node) {
  const Ints& pads = node.integers("pad");
  std::vector<std::string> widths(p.input_shape().size(), "(0, 0)");
  for (size_t axis = 1; axis < widths.size(); ++axis) {
    const auto at = static_cast<size_t>(p.axes().at(static_cast<int64_t>(axis)));
    widths[at] = fmt::format("({}, {})", pads[2 * axis - 2], pads[2 * axis - 1]);
  }
  p.assign("jnp.pad", {p.input(), fmt::format("({})", join(widths, ", ")),
                       option("constant_values", python_real(node.real("value")))});
}

void concat(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < node.inputs.size(); ++i) parts.push_back(p.input(i));
  const int64_t axis = p.axes().at(node.integer("axis"));
  p.assign_sequence("jnp.concatenate", parts, option("axis", std::to_string(axis)));
}

void spelled(ForwardPrinter& p, const Node& node) { p.spelled(ir::spellings(node.op)->jax); }
void constant(ForwardPrinter& p, const Node& node) { p.fixed(real_literal(node.real("value"))); }
void parameter(ForwardPrinter& p, const Node&) { p.fixed(p.param("weight")); }
void where(ForwardPrinter& p, const Node&) { p.assign("jnp.where", {p.input(0), p.input(1), p.input(2)}); }

void add(ForwardPrinter& p, const Node&) {
  if (p.mixed() && p.broadcasts()) return p.assign_full("jnp.add", {p.input(0), p.input(1)});
  p.assign_flat(p.input(0) + " + " + p.input(1), "jnp.add", {p.input(0), p.input(1)});
}

void mul(ForwardPrinter& p, const Node&) {
  if (p.mixed() && p.broadcasts()) return p.assign_full("jnp.multiply", {p.input(0), p.input(1)});
  p.assign_flat(p.input(0) + " * " + p.input(1), "jnp.multiply", {p.input(0), p.input(1)});
}

void nothing(ForwardPrinter&, const Node&) {}  // losses are printed by loss_fn

constexpr const char* kConv = R"(def $name$(x, kernel$bias_parameter$, *, stride, padding$extra$):
$doc$    $result$lax.conv_general_dilated(
        x,
        $kernel$,
        $strides$,
        padding=padding,
$options$        dimension_numbers=("N$places$C", "$places$IO", "N$places$C"),
    )
)";

// "(0, 1)"
std::string kernel_axes(size_t axes) {
  Ints all(axes);
  std::iota(all.begin(), all.end(), 0);
  return python_tuple(all);
}

// The function of one kind of convolution.
void print_conv(CodeWriter& out, const Graph& graph, Op op, bool mixed) {
  const size_t axes = ir::info(op).attributes[0].count;
  const bool transposed = ir::is_conv_transpose(op);
  const bool dilated = any_live(graph, op, [](const Node& n) { return !all_are(n.integers("dilation"), 1); });
  const bool grouped = any_live(graph, op, [](const Node& n) { return n.integer("groups") != 1; });
  const bool with = any_live(graph, op, [](const Node& n) { return n.has("bias"); });
  const bool without = any_live(graph, op, [](const Node& n) { return !n.has("bias"); });
  out.print(
      kConv,
      {{"name", ir::info(op).name},
       {"places", std::string("DHW").substr(3 - axes)},
       {"bias_parameter", !with     ? ""
                          : without ? ", bias=None"
                                    : ", bias"},
       {"doc",
        transposed ? "    \"\"\"`padding`: around the input with zeros between its places.\"\"\"\n" : ""},
       {"kernel", transposed ? fmt::format("jnp.flip(kernel, {})", kernel_axes(axes)) : "kernel"},
       {"strides", transposed ? fmt::format("window_strides={},\n        lhs_dilation=stride",
                                            python_tuple(Ints(axes, 1)))
                              : "window_strides=stride"},
       {"extra", (dilated ? ", dilation=" + python_tuple(Ints(axes, 1)) : std::string()) +
                     (grouped ? ", groups=1" : "")},
       {"result", with ? "y = " : "return "},
       {"options", std::string(dilated ? "        rhs_dilation=dilation,\n" : "") +
                       (grouped ? "        feature_group_count=groups,\n" : "")}});
  const auto body = out.indent();
  const char* sum = mixed ? "half(y + bias)" : "y + bias";
  if (with) out.line(fmt::format("return {}{}", without ? "y if bias is None else " : "", sum));
}

constexpr const char* kLinear = R"(def linear(x, weight, bias):
    return x @ weight + bias
)";
constexpr const char* kMixedLinear = R"(def linear(x, weight, bias):
    return half(x @ weight + bias)
)";
constexpr const char* kBatchNorm =
    R"(def batch_norm(x, scale, shift, stats, mean, var, *, eps$eps$, momentum$momentum$):
    """Normalises with the statistics of the batch and updates the running ones."""
    axes = tuple(range(x.ndim - 1))
    batch_mean, batch_var = x.mean(axes), x.var(axes)
    stats[mean] = (1 - momentum) * stats[mean] + momentum * batch_mean
    stats[var] = (1 - momentum) * stats[var] + momentum * batch_var
    return (x - batch_mean) * (lax.rsqrt(batch_var + eps) * scale) + shift
)";
constexpr const char* kInferenceBatchNorm =
    R"(def batch_norm(x, scale, shift, mean, var, *, eps$eps$):
    """Normalises with the running statistics."""
    return (x - mean) * (lax.rsqrt(var + eps) * scale) + shift
)";
constexpr const char* kLayerNorm = R"(def layer_norm(x, $affine$, *, dims, eps$eps$):
    axes = tuple(range(x.ndim - dims, x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(var + eps) * scale + shift
)";
constexpr const char* kRmsNorm = R"(def rms_norm(x, scale$scale$, *, dims, eps):
    axes = tuple(range(x.ndim - dims, x.ndim))
    return x * lax.rsqrt(jnp.mean(x * x, axes, keepdims=True) + eps) * scale
)";
constexpr const char* kGroupNorm = R"(def group_norm(x, $affine$, *, groups, eps):
    y = x.reshape(*x.shape[:-1], groups, -1)
    axes = (*range(1, x.ndim - 1), -1)
    mean, var = y.mean(axes, keepdims=True), y.var(axes, keepdims=True)
    return ((y - mean) * lax.rsqrt(var + eps)).reshape(x.shape) * scale + shift
)";
constexpr const char* kDropout = R"(def dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)
)";
constexpr const char* kResize = R"(def resize(x, size, *, mode, coordinates):
    """By a product along each axis; jax.image.resize reads other places."""
    for axis, new in enumerate(size, 1):
        matrix = resize_matrix(x.shape[axis], new, mode, coordinates)
        product = jnp.tensordot(x, matrix.astype(x.dtype), (axis, 0))
        x = jnp.moveaxis(product, -1, axis)
    return x
)";
constexpr const char* kMaxPool = R"(def $name$(x, *, window, stride, padding):
    return lax.reduce_window(
        x,
        -jnp.inf,
        lax.max,
        window_dimensions=(1, *window, 1),
        window_strides=(1, *stride, 1),
        padding=((0, 0), *padding, (0, 0)),
    )
)";
constexpr const char* kAvgPool = R"(def $name$(x, *, window, stride, padding, count_include_pad):
    def window_sum(values):
        return lax.reduce_window(
            values,
            0.0,
            lax.add,
            window_dimensions=(1, *window, 1),
            window_strides=(1, *stride, 1),
            padding=((0, 0), *padding, (0, 0)),
        )

    if count_include_pad:
        return window_sum(x) / $area$
    return window_sum(x) / window_sum(jnp.ones((1, *x.shape[1:$end$], 1), x.dtype))
)";

bool resizes_itself(const Graph& graph) {
  return std::any_of(graph.live.begin(), graph.live.end(), [&](int n) {
    const Node& node = graph.workload.nodes[static_cast<size_t>(n)];
    return node.op == Op::kResize &&
           !native_resize(node, graph.types[static_cast<size_t>(node.inputs[0])].shape);
  });
}

bool linear_with_bias(const Graph& graph) {
  for (const int n : graph.live) {
    const Node& node = graph.workload.nodes[static_cast<size_t>(n)];
    if (node.op == Op::kLinear && node.has("bias")) return true;
  }
  return false;
}

}  // namespace

const OpFunctions<ForwardPrinter>& op_functions() {
  static const OpFunctions<ForwardPrinter> table = with_spelled<ForwardPrinter>(
      {
          {Op::kConv1d, conv},
          {Op::kConv2d, conv},
          {Op::kConv3d, conv},
          {Op::kConvTranspose1d, conv_transpose},
          {Op::kConvTranspose2d, conv_transpose},
          {Op::kConvTranspose3d, conv_transpose},
          {Op::kLinear, linear},
          {Op::kBatchNorm, batch_norm},
          {Op::kLayerNorm, layer_norm},
          {Op::kRmsNorm, rms_norm},
          {Op::kEmbedding, embedding},
          {Op::kDropout, dropout},
          {Op::kRelu, relu},
          {Op::kGelu, gelu},
          {Op::kSigmoid, sigmoid},
          {Op::kTanh, tanh},
          {Op::kSoftmax, softmax},
          {Op::kMaxPool1d, max_pool},
          {Op::kMaxPool2d, max_pool},
          {Op::kMaxPool3d, max_pool},
          {Op::kAvgPool1d, avg_pool},
          {Op::kAvgPool2d, avg_pool},
          {Op::kAvgPool3d, avg_pool},
          {Op::kGlobalAvgPool2d, global_avg_pool2d},
          {Op::kResize, resize},
          {Op::kFlatten, reshape},
          {Op::kReshape, reshape},
          {Op::kTranspose, transpose},
          {Op::kPad, pad},
          {Op::kConcat, concat},
          {Op::kAdd, add},
          {Op::kMul, mul},
          {Op::kLrn, lrn},
          {Op::kPositionEmbedding, position_embedding},
          {Op::kAttention, attention},
          {Op::kLstm, recurrent},
          {Op::kGru, recurrent},
          {Op::kConstant, constant},
          {Op::kParameter, parameter},
          {Op::kWhere, where},
          {Op::kSoftmaxCrossEntropy, nothing},
          {Op::kCtc, nothing},
          {Op::kMse, nothing},
          {Op::kL1, nothing},
          {Op::kBceWithLogits, nothing},
          {Op::kGroupNorm, group_norm},
      },
      spelled);
  return table;
}

void print_helpers(CodeWriter& out, const Graph& graph, bool explicit_norms, bool mixed) {
  const auto helper = [&](bool used, const char* text, const char* eps = "", const char* momentum = "") {
    if (!used) return;
    out.print(text, {{"eps", explicit_norms ? "" : eps}, {"momentum", explicit_norms ? "" : momentum}});
    out.blank(2);
  };
  const auto norm = [&](Op op, const char* text, const char* eps = "") {
    if (!graph.has(op)) return;
    const bool partly = any_live(graph, op, [](const Node& n) { return n.params.size() < 2; });
    const bool plain = any_live(graph, op, [](const Node& n) { return n.params.empty(); });
    out.print(text, {{"eps", explicit_norms ? "" : eps},
                     {"affine", partly ? "scale=1.0, shift=0.0" : "scale, shift"},
                     {"scale", plain ? "=1.0" : ""}});
    out.blank(2);
  };
  for (const Op op : {Op::kConv1d, Op::kConv2d, Op::kConv3d, Op::kConvTranspose1d, Op::kConvTranspose2d,
                      Op::kConvTranspose3d}) {
    if (!graph.has(op)) continue;
    print_conv(out, graph, op, mixed);
    out.blank(2);
  }
  helper(linear_with_bias(graph), mixed ? kMixedLinear : kLinear);
  helper(graph.has(Op::kBatchNorm), graph.predicts ? kInferenceBatchNorm : kBatchNorm, "=1e-5", "=0.01");
  norm(Op::kLayerNorm, kLayerNorm, "=1e-6");
  norm(Op::kRmsNorm, kRmsNorm);
  norm(Op::kGroupNorm, kGroupNorm);
  for (const Op op : {Op::kMaxPool1d, Op::kMaxPool2d, Op::kMaxPool3d}) {
    if (!graph.has(op)) continue;
    out.print(kMaxPool, {{"name", ir::info(op).name}});
    out.blank(2);
  }
  size_t axes = 0;
  for (const Op op : {Op::kAvgPool1d, Op::kAvgPool2d, Op::kAvgPool3d}) {
    ++axes;
    if (!graph.has(op)) continue;
    const char* const areas[] = {"window[0]", "(window[0] * window[1])",
                                 "(window[0] * window[1] * window[2])"};
    out.print(kAvgPool,
              {{"name", ir::info(op).name}, {"area", areas[axes - 1]}, {"end", std::to_string(axes + 1)}});
    out.blank(2);
  }
  helper(resizes_itself(graph), kResizeMatrix);
  helper(resizes_itself(graph), kResize);
  helper(graph.has(Op::kDropout) && !graph.predicts, kDropout);
  for (const std::string& text : spelled_helpers(nodes_of(graph), &ir::Spellings::jax))
    helper(true, text.c_str());
  print_network_helpers(out, graph, mixed);
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
  std::set<std::string> names = spelled_names();
  names.merge(words(
      "params prefix i stats key keys state opt_state loss data path np jax jnp lax optax conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear batch_norm "
      "layer_norm rms_norm group_norm resize resize_matrix dropout max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d local_response_norm attention lstm gru half in_float32 "
      "forward loss_fn train_step batches load_data load_weights load_file prediction target losses smoothed kept l "
      "I O json argparse itertools partial Path NamedTuple Any TrainState init_params init_state "
      "make_optimizer grads updates BATCH_SIZE LEARNING_RATE OPTIMIZER dropout_key metrics arrays "
      "predict_step output decays average_weights AverageState "
      "WARMUP_STEPS WARMUP_FROM DECAY_STEPS FINAL_SHARE STEP_EVERY STEP_FACTOR CLIP_NORM CLIP_VALUE EMA_DECAY ACCUMULATE NO_DECAY learning_rate"));
  return names;
}

}  // namespace bakeoff::emit::jax
