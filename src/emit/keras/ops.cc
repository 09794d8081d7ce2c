// Keras has its own idea of many ops: pictures with channels last, `momentum` as the weight of the old
// statistics, no padding but "valid" and "same", which is not symmetric when there is a stride. The IR has
// PyTorch's conventions. Each function here finds the plain layer where the two agree (pads_as_same) and
// otherwise builds the op from what Keras has: zeros around the places first, minus infinity for a pool,
// cropping after a transposed convolution, or a class in helpers.py.
//
// One source prints Keras 3 and Keras 2: Dialect translates names (ops.relu, tf.nn.relu). Axes in attributes
// are canonical (N, C, H, W) and go through p.axes() before they are printed.

#include "emit/keras/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/texts.h"
#include "emit/keras/network_ops.h"
#include "emit/resize.h"
#include "emit/spelling.h"
#include "emit/windows.h"

namespace bakeoff::emit::keras {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

// "((top, bottom), (left, right))"; "(left, right)" for one axis.
std::string pairs(const Ints& pad) {
  Strings all;
  for (size_t i = 0; i < pad.size(); i += 2) all.push_back(fmt::format("({}, {})", pad[i], pad[i + 1]));
  return all.size() == 1 ? all[0] : fmt::format("({})", join(all, ", "));
}

// "MaxPooling" of a node over two axes: "layers.MaxPooling2D".
std::string layer_class(const char* name, size_t axes) { return fmt::format("layers.{}{}D", name, axes); }

// The input with zeros around its places.
std::string zero_padded(Printer& p, const Node& node) {
  const std::string x = p.input(node, 0);
  const Ints& pad = node.integers("pad");
  if (all_are(pad, 0)) return x;
  const std::string padded = p.fresh(p.value_name(node.inputs[0]) + "_padded");
  p.out.call(padded + " = " + layer_class("ZeroPadding", pad.size() / 2), {pairs(pad)}, "(" + x + ")");
  return padded;
}

void conv(Printer& p, const Node& node) {
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight"))].shape;
  const Ints &stride = node.integers("stride"), &dilation = node.integers("dilation");
  // Keras has no convolution with both; every s-th row and column of the one without stride is the same.
  const bool both = !all_are(stride, 1) && !all_are(dilation, 1);
  const ir::Shape kernel(w.begin() + 2, w.end());
  const bool same = !both && !p.shared(node) && pads_as_same(node, p.shape(node.inputs[0]), kernel);
  const std::string x = same ? p.input(node, 0) : zero_padded(p, node);
  Strings args = {std::to_string(w[0]),
                  kernel.size() == 1 ? std::to_string(kernel[0]) : python_tuple(kernel)};
  if (!both && !all_are(stride, 1)) args.push_back("strides=" + python_tuple(stride));
  if (same) args.push_back("padding=\"same\"");
  if (!all_are(dilation, 1)) args.push_back("dilation_rate=" + python_tuple(dilation));
  if (node.integer("groups") != 1) args.push_back(fmt::format("groups={}", node.integer("groups")));
  if (!node.has("bias")) args.push_back("use_bias=False");
  p.layer(node, layer_class("Conv", kernel.size()), args, x, {{"weight", "kernel"}, {"bias", "bias"}});
  if (!both) return;
  const std::string h = p.value_name(p.workload.output_of(p.node));
  std::string steps;
  for (const int64_t n : stride) steps += fmt::format(", ::{}", n);
  p.out.line(fmt::format("{0} = {0}[:{1}]  # strides; Keras rejects them with dilation", h, steps));
}

void conv_transpose(Printer& p, const Node& node) {
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight"))].shape;
  const Ints &stride = node.integers("stride"), &extra = node.integers("output_pad");
  const Ints &dilation = node.integers("dilation"), &pad = node.integers("pad");
  const ir::Shape kernel(w.begin() + 2, w.end());
  const int64_t groups = node.integer("groups");
  Strings args = {std::to_string(w[1] * groups), python_tuple(kernel)};
  const bool own = groups != 1 || !all_are(dilation, 1);
  if (own) {
    args.insert(args.end(),
                {python_tuple(stride), python_tuple(extra), python_tuple(dilation), std::to_string(groups)});
  } else {
    if (!all_are(stride, 1)) args.push_back("strides=" + python_tuple(stride));
    bool short_kernel = false;  // for which Keras adds places by itself
    for (size_t axis = 0; axis < kernel.size(); ++axis)
      short_kernel = short_kernel || kernel[axis] < stride[axis];
    if (short_kernel || !all_are(extra, 0)) args.push_back("output_padding=" + python_tuple(extra));
  }
  if (!node.has("bias")) args.push_back("use_bias=False");
  p.layer(node, own ? "ConvTranspose" : fmt::format("layers.Conv{}DTranspose", kernel.size()), args,
          p.input(node, 0), {{"weight", "kernel"}, {"bias", "bias"}});
  if (all_are(pad, 0)) return;
  const std::string h = p.value_name(p.workload.output_of(p.node));
  p.out.call(h + " = " + layer_class("Cropping", kernel.size()), {pairs(pad)}, "(" + h + ")");
}

// `product`: of x and the owner's weight as I, O.
std::string tied_dense(const std::string& name, const std::string& owner, const std::string& product) {
  return fmt::format(R"(class {}(layers.Layer):
    """A dense layer with the weight of {}."""

    def __init__(self, owner, units, use_bias=True, **kwargs):
        super().__init__(**kwargs)
        self.owner, self.units, self.use_bias = owner, units, use_bias

    def build(self, input_shape):
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(self.units,), initializer="zeros", name="bias"
            )

    def call(self, x):
        x = {}
        return x + self.bias if self.use_bias else x

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)
)",
                     name, owner, product);
}

void linear(Printer& p, const Node& node) {
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight"))].shape;
  Strings args = {std::to_string(w[0])};
  if (!node.has("bias")) args.push_back("use_bias=False");
  if (const std::string owner = p.tied_owner(); !owner.empty()) {
    const bool table = p.tied_to_embedding();
    const std::string name = table ? "DenseTiedToEmbedding" : "DenseTiedToDense";
    // tf.matmul would repeat the weight for every row of a sequence.
    const std::string product = p.dialect.second ? "tf.tensordot(x, {}, 1)" : "ops.matmul(x, {})";
    std::string weight = table ? p.op("transpose") + "(self.owner.embeddings)" : "self.owner.kernel";
    if (table && !p.half.empty()) weight = fmt::format("tf.cast({}, x.dtype)", weight);  // Keras leaves it
    p.need_class(
        tied_dense(name, table ? "an embedding" : "another", fmt::format(fmt::runtime(product), weight)));
    args.insert(args.begin(), owner);
    return p.layer(node, name, args, p.input(node, 0), {{"weight", "kernel"}, {"bias", "bias"}});
  }
  p.layer(node, "layers.Dense", args, p.input(node, 0), {{"weight", "kernel"}, {"bias", "bias"}});
}

// Keras's momentum is the weight of the old statistics.
std::string old_weight(double momentum) {
  const double exact = 1 - momentum;
  const double rounded = number_in(fmt::format("{:.12g}", exact));
  return python_real(std::abs(rounded - exact) < 1e-15 ? rounded : exact);
}

void batch_norm(Printer& p, const Node& node) {
  Strings args;
  if (p.equalised()) {
    args = {"axis=-1", "momentum=" + old_weight(node.real("momentum")),
            "epsilon=" + python_real(node.real("eps"))};
  }
  const char* head = p.fixes_scale(node) ? "BatchNormalizationOfFixedScale" : "layers.BatchNormalization";
  p.layer(node, head, args, p.input(node, 0),
          {{"weight", "gamma"}, {"bias", "beta"}, {"mean", "moving_mean"}, {"var", "moving_variance"}});
}

// A layer whose weights a norm may lack.
void norm_layer(Printer& p, const Node& node, const char* head, Strings args) {
  if (!node.has("bias")) args.push_back("center=False");
  if (!node.has("weight")) args.push_back("scale=False");
  if (node.params.empty()) return p.assign(head, args, "(" + p.input(node, 0) + ")");
  p.layer(node, head, args, p.input(node, 0), {{"weight", "gamma"}, {"bias", "beta"}});
}

// "[-2, -1]"
std::string last_axes(int64_t dims) {
  Ints axes;
  for (int64_t axis = -dims; axis < 0; ++axis) axes.push_back(axis);
  return fmt::format("[{}]", join(axes, ", "));
}

void layer_norm(Printer& p, const Node& node) {
  const int64_t dims = node.integer("dims");
  Strings args;
  if (dims > 1) {
    args.push_back("axis=" + last_axes(dims));
  } else if (p.equalised()) {
    args.push_back("axis=-1");
  }
  if (p.equalised()) args.push_back("epsilon=" + python_real(node.real("eps")));
  norm_layer(p, node, "layers.LayerNormalization", args);
}

void rms_norm(Printer& p, const Node& node) {
  const std::string axes = last_axes(node.integer("dims")), eps = python_real(node.real("eps"));
  if (node.params.empty()) {
    const std::string x = p.input(node, 0);
    return p.assign("rms_norm", {x, axes, "epsilon=" + p.literal(node.real("eps"))});
  }
  p.layer(node, p.dialect.second ? "RMSNormalization" : "layers.RMSNormalization",
          {"axis=" + axes, "epsilon=" + eps}, p.input(node, 0), {{"weight", "scale"}});
}

void group_norm(Printer& p, const Node& node) {
  norm_layer(p, node, "layers.GroupNormalization",
             {fmt::format("groups={}", node.integer("groups")), "axis=-1",
              "epsilon=" + python_real(node.real("eps"))});
}

void embedding(Printer& p, const Node& node) {
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight"))].shape;
  const auto padding = ir::padding_idx(node);
  const bool pads = padding && !p.training.predicts();
  Strings arguments = {std::to_string(w[0]), std::to_string(w[1])};
  if (pads) arguments.push_back(std::to_string(*padding));
  p.layer(node, pads ? "PaddedEmbedding" : "layers.Embedding", arguments, p.input(node, 0),
          {{"weight", "embeddings"}});
}

void dropout(Printer& p, const Node& node) {
  p.assign("layers.Dropout", {python_real(node.real("rate"))}, "(" + p.input(node, 0) + ")");
}

void relu(Printer& p, const Node& node) { p.assign(p.op("relu"), {p.input(node, 0)}); }
void sigmoid(Printer& p, const Node& node) { p.assign(p.op("sigmoid"), {p.input(node, 0)}); }
void tanh_(Printer& p, const Node& node) { p.assign(p.op("tanh"), {p.input(node, 0)}); }

void gelu(Printer& p, const Node& node) {
  p.assign(p.op("gelu"), {p.input(node, 0), "approximate=" + python_bool(node.word("form") == "tanh")});
}

void softmax(Printer& p, const Node& node) {
  const std::string x = p.input(node, 0);
  p.assign(p.op("softmax"), {x, fmt::format("axis={}", p.axes().at(node.integer("axis")))});
}

Strings pool_arguments(const Node& node) {
  return {python_tuple(node.integers("kernel")), "strides=" + python_tuple(node.integers("stride"))};
}

// The input with minus infinity around its places.
std::string infinity_padded(Printer& p, const Node& node) {
  const std::string x = p.input(node, 0);
  const Ints& pad = node.integers("pad");
  if (all_are(pad, 0)) return x;
  const std::string padded = p.fresh(p.value_name(node.inputs[0]) + "_padded");
  Strings sides = {"(0, 0)"};
  for (size_t i = 0; i < pad.size(); i += 2) sides.push_back(fmt::format("({}, {})", pad[i], pad[i + 1]));
  p.out.call(padded + " = " + p.op("pad"),
             {x, fmt::format("({}, (0, 0))", join(sides, ", ")), "constant_values=float(\"-inf\")"});
  return padded;
}

void max_pool(Printer& p, const Node& node) {
  p.assign(layer_class("MaxPooling", node.integers("kernel").size()), pool_arguments(node),
           "(" + infinity_padded(p, node) + ")");
}

// TensorFlow's pools along three axes have no float64.
void pool3d(Printer& p, const Node& node, const char* function, const std::string& x) {
  p.assign("pool3d", {p.dialect.translate(function), x, python_tuple(node.integers("kernel")),
                      python_tuple(node.integers("stride"))});
}

void max_pool3d(Printer& p, const Node& node) { pool3d(p, node, "ops.max_pool", infinity_padded(p, node)); }

void avg_pool3d(Printer& p, const Node& node) {
  const Ints& pad = node.integers("pad");
  if (all_are(pad, 0) || node.flag("count_include_pad"))
    return pool3d(p, node, "ops.average_pool", zero_padded(p, node));
  p.assign("average_pool3d", {p.input(node, 0), python_tuple(node.integers("kernel")),
                              python_tuple(node.integers("stride")), pairs(pad)});
}

void avg_pool(Printer& p, const Node& node) {
  const Ints& pad = node.integers("pad");
  const size_t axes = pad.size() / 2;
  if (!all_are(pad, 0) && !node.flag("count_include_pad")) {
    p.assign("average_pool",
             {p.input(node, 0), python_tuple(node.integers("kernel")), python_tuple(node.integers("stride")),
              axes == 1 ? fmt::format("({},)", pairs(pad)) : pairs(pad)});
    return;
  }
  const std::string x = zero_padded(p, node);
  p.assign(layer_class("AveragePooling", axes), pool_arguments(node), "(" + x + ")");
}

void global_avg_pool2d(Printer& p, const Node& node) {
  p.assign("layers.GlobalAveragePooling2D", {}, "(" + p.input(node, 0) + ")");
}

void resize(Printer& p, const Node& node) {
  const ir::Shape& from = p.shape(node.inputs[0]);
  const std::string x = p.input(node, 0);
  const Ints& size = node.integers("size");
  if (const Ints factors = whole_factors(node, from); !factors.empty()) {
    const std::string times = factors.size() == 1 ? std::to_string(factors[0]) : python_tuple(factors);
    return p.assign(layer_class("UpSampling", factors.size()), {times}, "(" + x + ")");
  }
  if (half_pixel_linear(node) && from.size() == 4) {
    if (p.backend == "tensorflow") return p.assign("resize_bilinear", {x, python_tuple(size)});
    return p.assign("ops.image.resize",
                    {x, python_tuple(size), "interpolation=\"bilinear\"", "data_format=\"channels_last\""});
  }
  std::vector<std::string> arguments = resize_options(node);
  arguments.insert(arguments.begin(), {x, python_tuple(size)});
  p.assign("resize", arguments);
}

void flatten(Printer& p, const Node& node) { p.assign("layers.Flatten", {}, "(" + p.input(node, 0) + ")"); }

void reshape(Printer& p, const Node& node) {
  Ints shape = physical_shape(p.plan.output(p.workload, p.node), node.integers("shape"));
  shape[0] = -1;
  std::string sizes = python_tuple(shape);
  if (const auto words = std::find(shape.begin(), shape.end(), ir::kSteps); words != shape.end()) {
    *words = -1;
    sizes = fmt::format("(BATCH_SIZE, {})", join(shape.begin() + 1, shape.end(), ", "));
  }
  p.assign(p.op("reshape"), {p.input(node, 0), sizes});
}

void transpose(Printer& p, const Node& node) {
  const std::string x = p.input(node, 0);
  const Ints perm = physical_perm(p.reads(), p.plan.output(p.workload, p.node), node.integers("perm"));
  if (is_identity(perm)) return p.same_as(x);
  p.assign(p.op("transpose"), {x, python_tuple(perm)});
}

void pad(Printer& p, const Node& node) {
  const std::string x = p.input(node, 0);
  const Ints& amounts = node.integers("pad");
  Strings sides(p.shape(node.inputs[0]).size(), "(0, 0)");
  for (size_t axis = 1; axis < sides.size(); ++axis) {
    sides[static_cast<size_t>(p.axes().at(static_cast<int64_t>(axis)))] =
        fmt::format("({}, {})", amounts[2 * axis - 2], amounts[2 * axis - 1]);
  }
  Strings args = {x, fmt::format("({})", join(sides, ", "))};
  const double value = node.real("value");
  if (std::isinf(value)) {
    args.push_back(fmt::format("constant_values=float(\"{}\")", value));
  } else if (value != 0) {
    args.push_back("constant_values=" + python_real(value));
  }
  p.assign(p.op("pad"), args);
}

void side_by_side(Printer& p, const Strings& parts, int64_t at) {
  const std::string axis = fmt::format("axis={}", at);
  const std::string list = fmt::format("[{}]", join(parts, ", "));
  if (list.size() + 9 <= 88) return p.assign(p.op("concatenate"), {list, axis});
  const std::string name = p.fresh(p.value_name(p.workload.output_of(p.node)) + "_parts");
  print_list(p.out, name + " = ", parts);
  p.assign(p.op("concatenate"), {name, axis});
}

void concat(Printer& p, const Node& node) {
  Strings parts;
  for (size_t i = 0; i < node.inputs.size(); ++i) parts.push_back(p.input(node, i));
  side_by_side(p, parts, p.axes().at(node.integer("axis")));
}

// A model that predicts gives the values one by one.
void join_values(Printer& p, const Node& node) {
  if (p.training.predicts() && p.node == p.workload.join()) return;
  Strings parts;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Shape& shape = p.shape(node.inputs[i]);
    parts.push_back(shape.size() == 2 ? p.input(node, i)
                                      : fmt::format("{}({}, (-1, {}))", p.op("reshape"), p.input(node, i),
                                                    ir::product(shape, 1, shape.size())));
  }
  side_by_side(p, parts, 1);
}

void spelled(Printer& p, const Node& node) {
  const ir::Spellings& all = *ir::spellings(node.op);
  const ir::Spelling& spelling = p.dialect.second ? all.tensorflow : all.keras;
  Strings inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(p.input(node, i));
  const Spelled made = spell(spelling, node, inputs, Language::kPython, p.axes());
  if (!made.head.empty()) return p.assign(made.head, made.arguments);
  p.out.line(fmt::format("{} = {}", p.value_name(p.workload.output_of(p.node)), made.flat));
}
void constant(Printer& p, const Node& node) { p.fixed(p.literal(node.real("value"))); }
void parameter(Printer& p, const Node& node) {
  if (const std::string owner = p.tied_owner(); !owner.empty())
    return p.layer(node, "WeightOfDense", {owner}, p.first_input(), {});
  const ir::ParamId id = node.param("weight");
  const ir::Shape shape = stored_shape(p.plan.params[static_cast<size_t>(id)],
                                       p.workload.parameters[static_cast<size_t>(id)].shape);
  p.layer(node, "Parameter", {python_tuple(shape)}, p.first_input(), {{"weight", "value"}});
}
void where(Printer& p, const Node& node) {
  const std::string condition = p.input(node, 0), b = p.input(node, 2);
  std::string a = p.input(node, 1);
  // tf.where gives a number as the first choice the type float32.
  if (p.dialect.second && p.workload.is_constant(node.inputs[1]))
    a = fmt::format("tf.constant({}, {}.dtype)", a, b);
  p.assign(p.op("where"), {condition, a, b});
}

// Whether the only axis that is not 1 is another than the last.
bool looks_like_bias(const ir::Shape& shape) {
  const auto ones = std::count(shape.begin(), shape.end(), 1);
  return ones + 1 == static_cast<std::ptrdiff_t>(shape.size()) && shape.back() == 1;
}

// Keras on TensorFlow takes a second operand with one axis that is not 1 for a bias of the channels wherever that
// axis is, if it is as long as they are (keras 3.15, backend/tensorflow/numpy.py): it comes first.
void add(Printer& p, const Node& node) {
  std::string a = p.input(node, 0), b = p.input(node, 1);
  const ir::Shape& second = p.shape(node.inputs[1]);
  if (!p.dialect.second && second != p.shape(node.inputs[0]) &&
      looks_like_bias(physical_shape(p.reads(1), second)))
    std::swap(a, b);
  p.assign(p.op("add"), {a, b});
}

void mul(Printer& p, const Node& node) {
  const std::string a = p.input(node, 0), b = p.input(node, 1);
  p.assign(p.op("multiply"), {a, b});
}

// Losses belong to compile_model; the walk ends before them.
void loss(Printer&, const Node&) {}

}  // namespace

const OpFunctions<Printer>& op_functions() {
  using ir::Op;
  static const OpFunctions<Printer> all = op_table<Printer>(
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
          {{Op::kTanh}, tanh_},
          {{Op::kSoftmax}, softmax},
          {{Op::kMaxPool1d, Op::kMaxPool2d}, max_pool},
          {{Op::kMaxPool3d}, max_pool3d},
          {{Op::kAvgPool1d, Op::kAvgPool2d}, avg_pool},
          {{Op::kAvgPool3d}, avg_pool3d},
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
          {{Op::kLstm}, lstm},
          {{Op::kGru}, gru},
          {{Op::kConstant}, constant},
          {{Op::kParameter}, parameter},
          {{Op::kWhere}, where},
          {kLosses, loss},
          {{Op::kGroupNorm}, group_norm},
      },
      spelled);
  return all;
}

}  // namespace bakeoff::emit::keras
