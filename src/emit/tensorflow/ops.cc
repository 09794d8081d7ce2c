#include "emit/tensorflow/ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "emit/resize.h"
#include "emit/tensorflow/network_ops.h"
#include "emit/windows.h"
#include "ir/op_table.h"

namespace bakeoff::emit::tensorflow {
namespace {

using ir::Node;
using ir::Op;
using Ints = std::vector<int64_t>;

std::string option(const char* name, const std::string& value) { return fmt::format("{}={}", name, value); }

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

// The input with zeros around its places.
std::string padded_input(const ForwardPrinter& p, const Node& node) {
  const Ints& pads = node.integers("pad");
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
  const bool listed = !depthwise || !p.has("bias");
  const bool same = all_are(stride, 1) && pads[0] == pads[1] && pads[2] == pads[3] &&
                    p.input_shape()[2] == p.output_shape()[2] && p.input_shape()[3] == p.output_shape()[3];
  std::vector<std::string> arguments = {listed || same ? p.input() : padded_input(p, node),
                                        p.param("weight")};
  arguments.push_back(option("strides", python_tuple(depthwise ? Ints{1, stride[0], stride[1], 1} : stride)));
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
                                        option("padding", "\"VALID\"")};
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
      option("padding", "\"VALID\"")};
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
  p.assign(fmt::format("conv{}d_transpose", dilation.size()), arguments);
  if (p.has("bias")) p.again_full("tf.nn.bias_add", {p.full_param("bias")});
}

void linear(ForwardPrinter& p, const Node&) {
  const std::string x = p.input(), w = p.param("weight");
  const bool table = p.stored_as_table("weight");
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
  const std::string table = p.full_param("weight"), ids = p.input();
  if (!p.mixed()) return p.assign("tf.nn.embedding_lookup", {table, ids});
  const std::string rows = fmt::format("tf.nn.embedding_lookup({}, {})", table, ids);
  p.assign("half", {rows});
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

void softmax(ForwardPrinter& p, const Node& node) {
  const int64_t axis = p.axes().at(node.integer("axis"));
  p.assign_full("tf.nn.softmax", {p.input(), option("axis", std::to_string(axis))});
}

std::vector<std::string> window(ForwardPrinter& p, const Node& node, const std::string& pad_text) {
  return {p.input(), option("ksize", python_tuple(node.integers("kernel"))),
          option("strides", python_tuple(node.integers("stride"))), option("padding", pad_text)};
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
  p.assign("tf.reshape", {p.input(), python_tuple(shape)});
}

void transpose(ForwardPrinter& p, const Node& node) {
  const Ints perm = physical_perm(p.reads(), p.gives(), node.integers("perm"));
  if (is_identity(perm)) return p.alias();
  p.assign("tf.transpose", {p.input(), python_tuple(perm)});
}

void pad(ForwardPrinter& p, const Node& node) {
  const Ints& pads = node.integers("pad");
  std::vector<std::string> widths(p.input_shape().size(), "[0, 0]");
  for (size_t axis = 1; axis < widths.size(); ++axis) {
    const auto at = static_cast<size_t>(p.axes().at(static_cast<int64_t>(axis)));
    widths[at] = fmt::format("[{}, {}]", pads[2 * axis - 2], pads[2 * axis - 1]);
  }
  p.assign("tf.pad", {p.input(), fmt::format("[{}]", join(widths, ", ")),
                      option("constant_values", python_real(node.real("value")))});
}

void concat(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < node.inputs.size(); ++i) parts.push_back(p.input(i));
  const int64_t axis = p.axes().at(node.integer("axis"));
  p.assign_sequence("tf.concat", parts, option("axis", std::to_string(axis)));
}

// Of sizes that differ: a gradient is a sum.
void broadcast(ForwardPrinter& p, const char* function) {
  p.assign_full(function, {p.input(0), fmt::format("tf.cast({}, tf.float32)", p.input(1))});
}

void spelled(ForwardPrinter& p, const Node& node) { p.spelled(ir::spellings(node.op)->tensorflow); }
void constant(ForwardPrinter& p, const Node& node) { p.fixed(real_literal(node.real("value"))); }
void parameter(ForwardPrinter& p, const Node&) { p.fixed(p.param("weight")); }
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

void nothing(ForwardPrinter&, const Node&) {}  // losses are printed by loss_fn

constexpr const char* kConvXla = R"(@tf.function(jit_compile=True)
def conv2d_xla(x, kernel, *, strides, padding, dilations):
    """For convolutions whose gradient TensorFlow's own CPU kernels lack."""
    return tf.nn.conv2d(x, kernel, strides, padding, dilations=dilations)
)";
constexpr const char* kConv1dXla = R"(@tf.function(jit_compile=True)
def conv1d_xla(x, kernel, *, stride, padding, dilations):
    """For convolutions whose gradient TensorFlow's own CPU kernels lack."""
    return tf.nn.conv1d(x, kernel, stride, padding, dilations=dilations)
)";
constexpr const char* kDilated = R"(def dilated(kernel, dilations):
    """Zeros between the kernel's places: TensorFlow's CPU kernels lack this dilation."""
    for axis, step in enumerate(dilations):
        before, n, after = kernel.shape[:axis], kernel.shape[axis], kernel.shape[axis + 1 :]
        places = [[0, 0]] * (len(kernel.shape) + 1)
        places[axis + 1] = [0, step - 1]
        kernel = tf.pad(tf.expand_dims(kernel, axis + 1), places)
        kernel = tf.reshape(kernel, (*before, n * step, *after))
        kernel = tf.gather(kernel, range(n * step - step + 1), axis=axis)
    return kernel
)";
constexpr const char* kConv3d = R"(def conv3d(x, kernel, *, strides, padding, dilations, groups):
    """tf.nn.conv3d itself has neither dilation nor groups on a CPU."""
    kernel = dilated(kernel, dilations)
    parts = zip(tf.split(x, groups, -1), tf.split(kernel, groups, -1))
    return tf.concat([tf.nn.conv3d(a, k, strides, padding) for a, k in parts], -1)
)";
constexpr const char* kConvTranspose = R"(def $name$(x, kernel, *, size, strides$cut$$dilations$$groups$):
    """`size`: of the output$before$."""
)";
constexpr const char* kBatchNorm =
    R"(def batch_norm(x, scale, shift, running_mean, running_var, *, eps$eps$, momentum$momentum$):
    """Normalises with the statistics of the batch and updates the running ones."""
    mean, var = tf.nn.moments(x, axes=list(range(x.shape.rank - 1)))
    running_mean.assign((1 - momentum) * running_mean + momentum * mean)
    running_var.assign((1 - momentum) * running_var + momentum * var)
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)
)";
constexpr const char* kInferenceBatchNorm =
    R"(def batch_norm(x, scale, shift, mean, var, *, eps$eps$):
    """Normalises with the running statistics."""
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)
)";
constexpr const char* kLayerNorm = R"(def layer_norm(x, $affine$, *, dims, eps$eps$):
    mean, var = tf.nn.moments(x, axes=list(range(-dims, 0)), keepdims=True)
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)
)";
constexpr const char* kRmsNorm = R"(def rms_norm(x, scale$scale$, *, dims, eps):
    square = tf.reduce_mean(x * x, axis=list(range(-dims, 0)), keepdims=True)
    return x * tf.math.rsqrt(square + eps) * scale
)";
constexpr const char* kGroupNorm = R"(def group_norm(x, $affine$, *, groups, eps):
    *places, c = x.shape[1:]
    y = tf.reshape(x, (-1, *places, groups, c // groups))
    axes = (*range(1, x.shape.rank - 1), x.shape.rank)
    mean, var = tf.nn.moments(y, axes=axes, keepdims=True)
    y = (y - mean) * tf.math.rsqrt(var + eps)
    return tf.reshape(y, (-1, *places, c)) * scale + shift
)";
constexpr const char* kGelu = R"(def gelu(x):
    """Exact also in float64, where tf.nn.gelu has its constants rounded to float32."""
    return 0.5 * x * (1 + tf.math.erf(x / math.sqrt(2)))
)";
constexpr const char* kGeluTanh = R"(def gelu_tanh(x):
    """Exact also in float64, where tf.nn.gelu has its constants rounded to float32."""
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + tf.tanh(inner))
)";
constexpr const char* kMaxPool = R"(def $name$(x, *, ksize, strides, padding):
    """$why$"""
    x = tf.pad(x, padding, constant_values=x.dtype.min)
    return tf.nn.$name$(x, ksize, strides, "VALID")
)";
constexpr const char* kPool3d = R"(def pool3d(pool, x, *, ksize, strides):
    """Over H and W, then over D: TensorFlow's own pools along three axes have no float64."""
    d, h, w, c = x.shape[1:]
    x = pool(tf.reshape(x, (-1, h, w, c)), ksize[1:], strides[1:], "VALID")
    h, w = x.shape[1:3]
    x = tf.reshape(x, (-1, d, h * w, c))
    x = pool(x, (ksize[0], 1), (strides[0], 1), "VALID")
    return tf.reshape(x, (-1, x.shape[1], h, w, c))
)";
constexpr const char* kAvgPool3d = R"(def avg_pool3d(x, *, ksize, strides, padding):
    """The mean over the part of each window that lies inside."""

    def mean(values):
        values = tf.pad(values, padding)
        return pool3d(tf.nn.avg_pool2d, values, ksize=ksize, strides=strides)

    return mean(x) / mean(tf.ones((1, *x.shape[1:4], 1), x.dtype))
)";
constexpr const char* kAvgPool = R"(def $name$(x, *, ksize, strides, padding, count_include_pad):
    """tf.nn.$name$ takes no explicit padding."""
    y = tf.nn.$name$(tf.pad(x, padding), ksize, strides, "VALID")
    if count_include_pad:
        return y
    inside = tf.pad(tf.ones((1, *x.shape[1:$end$], 1), x.dtype), padding)
    return y / tf.nn.$name$(inside, ksize, strides, "VALID")
)";

constexpr const char* kResize = R"(def resize(x, size, *, mode, coordinates):
    """By a product along each axis; tf.image.resize reads other places."""
    for axis, new in enumerate(size, 1):
        matrix = resize_matrix(x.shape[axis], new, mode, coordinates)
        x = tf.tensordot(x, tf.constant(matrix, x.dtype), (axis, 0))
        last = x.shape.rank - 1
        x = tf.transpose(x, (*range(axis), last, *range(axis, last)))
    return x
)";
constexpr const char* kResizeBilinear = R"(def resize_bilinear(x, size):
    """tf.image.resize, which computes in float32; float64 by products."""
    if x.dtype == tf.float64:
        return resize(x, size, mode="linear", coordinates="half_pixel")
    return tf.cast(tf.image.resize(x, size), x.dtype)
)";
constexpr const char* kRepeatPlaces = R"(def repeat_places(x, times):
    """Every place so many times along each axis."""
    for axis, count in enumerate(times, 1):
        sizes = (*x.shape[1:axis], count * x.shape[axis], *x.shape[axis + 1 :])
        x = tf.reshape(tf.stack([x] * count, axis + 1), (-1, *sizes))
    return x
)";

bool any_resize(const Graph& graph, Resize form, bool xla) {
  return std::any_of(graph.live.begin(), graph.live.end(), [&](int n) {
    const Node& node = graph.workload.nodes[static_cast<size_t>(n)];
    return node.op == Op::kResize &&
           resize_form(node, graph.types[static_cast<size_t>(node.inputs[0])].shape, xla) == form;
  });
}

bool any_node(const Graph& graph, bool (*holds)(const Node&)) {
  return std::any_of(graph.live.begin(), graph.live.end(),
                     [&](int n) { return holds(graph.workload.nodes[static_cast<size_t>(n)]); });
}

bool any_conv_xla(const Graph& graph) {
  return std::any_of(graph.live.begin(), graph.live.end(), [&](int n) {
    const Node& node = graph.workload.nodes[static_cast<size_t>(n)];
    return node.op == Op::kConv2d && !graph.plan.depthwise[static_cast<size_t>(n)] &&
           (needs_xla(node) || node.integer("groups") != 1);
  });
}

void print_conv_transpose(CodeWriter& out, const Graph& graph, Op op) {
  if (!graph.has(op)) return;
  const std::string name = fmt::format("conv{}d_transpose", ir::info(op).attributes[0].count);
  const bool cuts = any_live(graph, op, [](const Node& n) { return !all_are(n.integers("pad"), 0); });
  const bool dilated = any_live(graph, op, [](const Node& n) { return !all_are(n.integers("dilation"), 1); });
  const bool grouped = any_live(graph, op, [](const Node& n) { return n.integer("groups") != 1; });
  out.print(kConvTranspose, {{"name", name},
                             {"cut", cuts ? ", cut=()" : ""},
                             {"dilations", dilated ? ", dilations=()" : ""},
                             {"groups", grouped ? ", groups=1" : ""},
                             {"before", cuts ? " before `cut` is taken off" : ""}});
  {
    const auto body = out.indent();
    if (dilated) out.line("kernel = dilated(kernel, dilations)");
    out.line("shape = (tf.shape(x)[0], *size, kernel.shape[-2])");
    const std::string function = "tf.nn." + name;
    if (grouped) {
      out.print("parts = zip(tf.split(x, groups, -1), tf.split(kernel, groups, -1))\n");
      out.call("y = tf.concat",
               {fmt::format("[{}(a, k, shape, strides, \"VALID\") for a, k in parts]", function), "-1"});
    } else {
      out.line(
          fmt::format("{}{}(x, kernel, shape, strides, \"VALID\")", cuts ? "y = " : "return ", function));
    }
    if (cuts) {
      out.print("places = [slice(a, n - b) for (a, b), n in zip(cut, size)]\n");
      out.line("return y[(slice(None), *places)]");
    } else if (grouped) {
      out.line("return y");
    }
  }
  out.blank(2);
}

// Convolutions whose kernels are stretched by themselves.
bool dilates_kernels(const Graph& graph) {
  const auto dilated = [](const Node& n) { return !all_are(n.integers("dilation"), 1); };
  return any_live(graph, Op::kConvTranspose1d, dilated) || any_live(graph, Op::kConvTranspose2d, dilated) ||
         any_live(graph, Op::kConvTranspose3d, dilated) ||
         any_live(graph, Op::kConv3d, [](const Node& n) { return !plain_conv3d(n); });
}

}  // namespace

bool native_depthwise(const Node& conv) {
  const Ints& stride = conv.integers("stride");
  return conv.integers("dilation") == Ints{1, 1} && stride[0] == stride[1];
}

OpFunctions<ForwardPrinter> op_functions(bool xla) {
  return with_spelled<ForwardPrinter>(
      {
          {Op::kConv1d, conv1d},
          {Op::kConv2d, conv2d},
          {Op::kConv3d, conv3d},
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
          {Op::kMaxPool1d, max_pool1d},
          {Op::kMaxPool2d, xla ? max_pool2d_xla : max_pool2d},
          {Op::kMaxPool3d, max_pool3d},
          {Op::kAvgPool1d, avg_pool},
          {Op::kAvgPool2d, avg_pool},
          {Op::kAvgPool3d, avg_pool3d},
          {Op::kGlobalAvgPool2d, global_avg_pool2d},
          {Op::kResize, xla ? resize_xla : resize},
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
}

void print_helpers(CodeWriter& out, const Graph& graph, const Style& style) {
  const auto helper = [&](bool used, const char* text, const char* eps = "", const char* momentum = "") {
    if (!used) return;
    out.print(text,
              {{"eps", style.explicit_norms ? "" : eps}, {"momentum", style.explicit_norms ? "" : momentum}});
    out.blank(2);
  };
  const auto norm = [&](Op op, const char* text, const char* eps = "") {
    if (!graph.has(op)) return;
    const bool partly = any_live(graph, op, [](const Node& n) { return n.params.size() < 2; });
    const bool plain = any_live(graph, op, [](const Node& n) { return n.params.empty(); });
    out.print(text, {{"eps", style.explicit_norms ? "" : eps},
                     {"affine", partly ? "scale=1.0, shift=0.0" : "scale, shift"},
                     {"scale", plain ? "=1.0" : ""}});
    out.blank(2);
  };
  const auto padded = [&](Op op) {
    return any_live(graph, op, [](const Node& n) { return !all_are(n.integers("pad"), 0); });
  };
  helper(any_conv_xla(graph), kConvXla);
  helper(any_live(graph, Op::kConv1d, needs_xla), kConv1dXla);
  helper(dilates_kernels(graph), kDilated);
  helper(any_live(graph, Op::kConv3d, [](const Node& n) { return !plain_conv3d(n); }), kConv3d);
  for (const Op op : {Op::kConvTranspose1d, Op::kConvTranspose2d, Op::kConvTranspose3d})
    print_conv_transpose(out, graph, op);
  helper(graph.has(Op::kBatchNorm), graph.predicts ? kInferenceBatchNorm : kBatchNorm, "=1e-3", "=0.01");
  norm(Op::kLayerNorm, kLayerNorm, "=1e-3");
  norm(Op::kRmsNorm, kRmsNorm);
  helper(any_node(graph, [](const Node& n) { return n.op == Op::kGelu && n.word("form") == "erf"; }), kGelu);
  helper(any_node(graph, [](const Node& n) { return n.op == Op::kGelu && n.word("form") == "tanh"; }),
         kGeluTanh);
  norm(Op::kGroupNorm, kGroupNorm);
  const auto pool = [&](Op op, const char* text, const char* why, const char* end) {
    if (!padded(op)) return;
    out.print(text, {{"name", ir::info(op).name}, {"why", why}, {"end", end}});
    out.blank(2);
  };
  pool(Op::kMaxPool1d, kMaxPool, "tf.nn.max_pool1d takes no explicit padding.", "");
  if (style.xla) pool(Op::kMaxPool2d, kMaxPool, "XLA has no pooling with explicit padding.", "");
  pool(Op::kAvgPool1d, kAvgPool, "", "2");
  pool(Op::kAvgPool2d, kAvgPool, "", "3");
  helper(graph.has(Op::kMaxPool3d) || graph.has(Op::kAvgPool3d), kPool3d);
  helper(any_live(graph, Op::kAvgPool3d, counts_real_places), kAvgPool3d);
  const bool bilinear = any_resize(graph, Resize::kBilinear, style.xla);
  const bool products = bilinear || any_resize(graph, Resize::kProducts, style.xla);
  helper(products, kResizeMatrix);
  helper(products, kResize);
  helper(bilinear, kResizeBilinear);
  helper(any_resize(graph, Resize::kRepeat, style.xla), kRepeatPlaces);
  for (const std::string& text : spelled_helpers(nodes_of(graph), &ir::Spellings::tensorflow))
    helper(true, text.c_str());
  print_network_helpers(out, graph, style.mixed);
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
  std::set<std::string> names = spelled_names();
  names.merge(words(
      "weights prefix block tf np self model optimizer tape loss losses smoothed kept count gradients variables prediction target path data "
      "arrays json argparse itertools Path load_file load_data load_weights batches loss_fn train_step "
      "make_model make_optimizer batch_norm layer_norm rms_norm group_norm resize resize_matrix resize_bilinear repeat_places max_pool1d max_pool2d avg_pool1d avg_pool2d avg_pool3d pool3d local_response_norm "
      "attention lstm gru half in_float32 conv1d_xla conv2d_xla conv3d conv1d_transpose conv2d_transpose conv3d_transpose dilated gelu gelu_tanh glorot_uniform math predict_step "
      "compiled functools train predict output l I O BATCH_SIZE LEARNING_RATE "
      "WARMUP_STEPS WARMUP_FROM DECAY_STEPS FINAL_SHARE STEP_EVERY STEP_FACTOR CLIP_NORM CLIP_VALUE EMA_DECAY ACCUMULATE NO_DECAY learning_rate"));
  return names;
}

}  // namespace bakeoff::emit::tensorflow
