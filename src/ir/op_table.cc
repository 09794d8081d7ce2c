// Rows by families. Ops that differ in their number of axes only (conv1d to conv3d, the pools) are made by
// one function, so their attributes, docs and rules cannot drift apart; elementwise ops come from the table
// of ir/elementwise.h.

#include "ir/op_table.h"

#include <fmt/format.h>

#include <cassert>

#include "base/texts.h"
#include "ir/elementwise.h"
#include "ir/op_shapes.h"

namespace bakeoff::ir {
namespace {

using Ints = std::vector<int64_t>;

const ParamSpec kWeight{"weight", Role::kWeight};
const ParamSpec kBias{"bias", Role::kBias, true};

// What the axes after N and C are called.
struct Places {
  std::string axes;     // "height, width"
  std::string sides;    // "top, bottom, left, right"
  std::string letters;  // "H,W"
  std::string kernel;   // "kH,kW"
};

const Places& places(size_t axes) {
  static const std::vector<Places> all = {
      {"width", "left, right", "W", "kW"},
      {"height, width", "top, bottom, left, right", "H,W", "kH,kW"},
      {"depth, height, width", "front, back, top, bottom, left, right", "D,H,W", "kD,kH,kW"}};
  return all[axes - 1];
}

OpInfo conv(Op op, const char* name, size_t axes) {
  const Places& p = places(axes);
  return {.op = op,
          .name = name,
          .doc = fmt::format("{}-d cross-correlation of N,C,{} with kernels O,I,{} (no kernel flip).", axes,
                             p.letters, p.kernel),
          .attributes = {ints("stride", Ints(axes, 1), p.axes),
                         ints("pad", Ints(2 * axes, 0), "zeros at " + p.sides),
                         ints("dilation", Ints(axes, 1), p.axes), integer("groups", 1, "channel groups")},
          .params = {kWeight, kBias},
          .axes = AxisRule::kSpatial,
          .shape = rules::conv,
          .macs = rules::conv_macs};
}

OpInfo conv_transpose(Op op, const char* name, size_t axes) {
  const Places& p = places(axes);
  OpInfo row = conv(op, name, axes);
  row.doc = fmt::format(
      "The transpose of the linear map of a {}-d convolution: kernels are I,O,{}, and an axis becomes "
      "stride (size - 1) + dilation (kernel - 1) + 1 + output_pad - pads long.",
      axes, p.kernel);
  row.attributes[1].doc = "places cut off at " + p.sides;
  row.attributes.push_back(ints("output_pad", Ints(axes, 0), p.axes + ": places added at the end"));
  row.shape = rules::conv_transpose;
  row.macs = rules::conv_transpose_macs;
  return row;
}

OpInfo pool(Op op, const char* name, size_t axes, const char* doc) {
  const Places& p = places(axes);
  return {.op = op,
          .name = name,
          .doc = doc,
          .attributes = {ints_required("kernel", axes, p.axes), ints_required("stride", axes, p.axes),
                         ints("pad", Ints(2 * axes, 0), p.sides + "; at most half the kernel")},
          .axes = AxisRule::kSpatial,
          .shape = rules::pool};
}

OpInfo max_pool(Op op, const char* name, size_t axes) {
  return pool(op, name, axes,
              "Maximum over windows; padding counts as minus infinity. Ties: the first in row-major order "
              "takes the gradient.");
}

OpInfo avg_pool(Op op, const char* name, size_t axes) {
  OpInfo row = pool(op, name, axes, "Mean over windows.");
  row.attributes.push_back(
      flag("count_include_pad", false, "divide by the kernel's size also at the border"));
  return row;
}

std::vector<OpInfo> parameterised_ops() {
  return {
      conv(Op::kConv1d, "conv1d", 1),
      conv(Op::kConv2d, "conv2d", 2),
      conv(Op::kConv3d, "conv3d", 3),
      conv_transpose(Op::kConvTranspose1d, "conv_transpose1d", 1),
      conv_transpose(Op::kConvTranspose2d, "conv_transpose2d", 2),
      conv_transpose(Op::kConvTranspose3d, "conv_transpose3d", 3),
      {.op = Op::kLinear,
       .name = "linear",
       .doc = "x W^T + b on the last axis; W is O,I.",
       .attributes = {},
       .params = {kWeight, kBias},
       .axes = AxisRule::kCanonical,
       .shape = rules::linear,
       .macs = rules::linear_macs},
      {.op = Op::kBatchNorm,
       .name = "batch_norm",
       .doc = "Normalises axis 1 (C) of two to five axes with the batch's biased variance in training; "
              "running = (1 - momentum) running + momentum batch. In inference with the running mean and "
              "variance.",
       .attributes = {real("eps", 1e-5, "added to the variance"),
                      real("momentum", 0.1,
                           "weight of the new batch in the running statistics (torch's sense)")},
       .params = {{"weight", Role::kScale},
                  {"bias", Role::kShift},
                  {"mean", Role::kRunningMean},
                  {"var", Role::kRunningVar}},
       .axes = AxisRule::kSpatial,
       .shape = rules::batch_norm},
      {.op = Op::kLayerNorm,
       .name = "layer_norm",
       .doc = "Normalises the last `dims` axes with their biased variance.",
       .attributes = {integer("dims", 1, "number of trailing axes"),
                      real("eps", 1e-5, "added to the variance")},
       .params = {{"weight", Role::kScale, true}, {"bias", Role::kShift, true}},
       .axes = AxisRule::kCanonical,
       .shape = rules::layer_norm},
      {.op = Op::kRmsNorm,
       .name = "rms_norm",
       .doc =
           "x / sqrt(mean(x^2) + eps) over the last `dims` axes, times the weight (Zhang & Sennrich 2019).",
       .attributes = {integer("dims", 1, "number of trailing axes"),
                      real("eps", 1e-5, "added to the mean of the squares")},
       .params = {{"weight", Role::kScale, true}},
       .axes = AxisRule::kCanonical,
       .shape = rules::layer_norm},
      {.op = Op::kEmbedding,
       .name = "embedding",
       .doc = "Rows of the table, one for each integer.",
       .attributes = {optional_integer("padding_idx", "the row that no gradient reaches from here")},
       .params = {{"weight", Role::kTable}},
       .axes = AxisRule::kCanonical,
       .integer_input = 0,
       .bound = rules::embedding_rows,
       .shape = rules::embedding},
      {.op = Op::kDropout,
       .name = "dropout",
       .doc = "In training zeroes each element with probability `rate` and divides the rest by 1 - rate; in "
              "inference "
              "passes its input on.",
       .attributes = {real("rate", 0.5, "in [0, 1)")},
       .shape = rules::dropout},
  };
}

std::vector<OpInfo> activation_ops() {
  return {
      {.op = Op::kRelu,
       .name = "relu",
       .doc = "max(x, 0); the gradient at 0 is 0.",
       .attributes = {},
       .shape = rules::same},
      {.op = Op::kGelu,
       .name = "gelu",
       .doc = "erf: x (1 + erf(x / sqrt 2)) / 2. tanh: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.",
       .attributes = {word("form", {"erf", "tanh"}, "which formula")},
       .shape = rules::same},
      {.op = Op::kSigmoid,
       .name = "sigmoid",
       .doc = "1 / (1 + exp(-x)).",
       .attributes = {},
       .shape = rules::same},
      {.op = Op::kTanh, .name = "tanh", .doc = "Hyperbolic tangent.", .attributes = {}, .shape = rules::same},
      {.op = Op::kSoftmax,
       .name = "softmax",
       .doc = "exp(x) / sum exp(x) along one axis.",
       .attributes = {integer("axis", 1, "counted from N = 0")},
       .axes = AxisRule::kAxis,
       .shape = rules::softmax},
  };
}

std::vector<OpInfo> pooling_ops() {
  return {
      max_pool(Op::kMaxPool1d, "max_pool1d", 1),
      max_pool(Op::kMaxPool2d, "max_pool2d", 2),
      max_pool(Op::kMaxPool3d, "max_pool3d", 3),
      avg_pool(Op::kAvgPool1d, "avg_pool1d", 1),
      avg_pool(Op::kAvgPool2d, "avg_pool2d", 2),
      avg_pool(Op::kAvgPool3d, "avg_pool3d", 3),
      {.op = Op::kGlobalAvgPool2d,
       .name = "global_avg_pool2d",
       .doc = "Mean over H and W: N,C,H,W to N,C.",
       .attributes = {},
       .axes = AxisRule::kSpatial,
       .shape = rules::global_pool2d},
      {.op = Op::kResize,
       .name = "resize",
       .doc = "The places after N and C in new sizes. Output place i of n lies at (i + 0.5) size / n - 0.5 "
              "(half_pixel), i (size - 1) / (n - 1) (align_corners) or i size / n (asymmetric) of the input. "
              "linear: between the two places around it, the first or last one beyond them. nearest: the "
              "place floor((i + 0.5) size / n) (half_pixel) or floor(i size / n) (asymmetric).",
       .attributes = {ints_required("size", 0, "the new sizes of the axes after N and C"),
                      word("mode", {"nearest", "linear"}, "which places count"),
                      word("coordinates", {"half_pixel", "align_corners", "asymmetric"},
                           "where an output place lies")},
       .axes = AxisRule::kSpatial,
       .shape = rules::resize},
  };
}

std::vector<OpInfo> shape_ops() {
  return {
      {.op = Op::kFlatten,
       .name = "flatten",
       .doc = "All axes after N into one, row-major in canonical order.",
       .attributes = {},
       .axes = AxisRule::kCanonical,
       .shape = rules::flatten},
      {.op = Op::kReshape,
       .name = "reshape",
       .doc = "Row-major in canonical order; N stays first, and what has none gets none.",
       .attributes = {ints_required("shape", 0, "the new sizes, N first")},
       .axes = AxisRule::kCanonical,
       .shape = rules::reshape},
      {.op = Op::kTranspose,
       .name = "transpose",
       .doc = "Axis i of the output is axis perm[i] of the input.",
       .attributes = {ints_required("perm", 0, "a permutation with 0 first")},
       .axes = AxisRule::kCanonical,
       .shape = rules::transpose},
      {.op = Op::kPad,
       .name = "pad",
       .doc = "Adds constants around the axes after N.",
       .attributes = {ints_required("pad", 0, "before, after of axis 1, of axis 2, ..."),
                      real("value", 0.0, "the constant")},
       .axes = AxisRule::kAxis,
       .shape = rules::pad},
      {.op = Op::kConcat,
       .name = "concat",
       .doc = "Joins values along one axis.",
       .attributes = {integer("axis", 1, "counted from N = 0")},
       .min_inputs = 2,
       .max_inputs = 64,
       .axes = AxisRule::kAxis,
       .shape = rules::concat},
      {.op = Op::kJoin,
       .name = "join",
       .doc = "Values side by side, each as N,elements. A script that predicts them gives them one by one.",
       .attributes = {},
       .min_inputs = 2,
       .max_inputs = 64,
       .axes = AxisRule::kCanonical,
       .shape = rules::join_values},
      {.op = Op::kAdd,
       .name = "add",
       .doc = "a + b; sizes are equal or 1.",
       .attributes = {},
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = rules::broadcast},
      {.op = Op::kMul,
       .name = "mul",
       .doc = "a b, element by element; sizes are equal or 1.",
       .attributes = {},
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = rules::broadcast},
  };
}

constexpr const char* kAttention =
    "softmax(q k^T / sqrt D) v; q is N,T,heads,D, k and v are N,S,groups,D: neighbouring heads share keys. The optional "
    "fourth input, i32[N], masks padding: query t sees the keys s <= last[n] of its row. In a step of decoding caches "
    "take k and v in, at the positions that the fourth input names.";

std::vector<OpInfo> network_ops() {
  const AttrSpec reverse =
      flag("reverse", false, "from the last place to the first; outputs stay at their places");
  return {
      {.op = Op::kLrn,
       .name = "lrn",
       .doc = "x / (k + alpha s)^beta, s = sum of x^2 over `size` channels from c - floor(size / 2) on; "
              "those outside count 0 (Krizhevsky et al. 2012, section 3.3; torch divides alpha by size).",
       .attributes = {integer("size", 5, "number of channels"), real("alpha", 1e-4, "factor of the sum"),
                      real("beta", 0.75, "exponent"), real("k", 2.0, "added to the sum")},
       .axes = AxisRule::kSpatial,
       .shape = rules::lrn},
      {.op = Op::kPositionEmbedding,
       .name = "position_embedding",
       .doc = "x + the first T rows of the table, for x of N,T,F.",
       .attributes = {},
       .params = {{"weight", Role::kTable}},
       .axes = AxisRule::kCanonical,
       .shape = rules::position_embedding},
      {.op = Op::kAttention,
       .name = "attention",
       .doc = kAttention,
       .attributes = {flag("causal", false, "query t sees the keys s <= t"),
                      integer("window", 0, "with causal, how many of the last keys a query sees; 0: all"),
                      real("rate", 0, "in training, of the softmax's weights, as `dropout` has it")},
       .min_inputs = 3,
       .max_inputs = 4,
       .params = {{"keys", Role::kCache, true}, {"values", Role::kCache, true}},
       .axes = AxisRule::kCanonical,
       .integer_input = 3,
       .bound = rules::attention_keys,
       .shape = rules::attention,
       .macs = rules::attention_macs},
      {.op = Op::kLstm,
       .name = "lstm",
       .doc = "The whole sequence N,T,F from a zero state to the hidden states N,T,U: "
              "(i, f, g, o) = x W_ih^T + h W_hh^T + b, c = sigm(f) c + sigm(i) tanh(g), h = sigm(o) tanh(c). "
              "The rows of W_ih 4U,F and W_hh 4U,U are the gates in the order i, f, g, o.",
       .attributes = {reverse},
       .params = {{"weight_ih", Role::kWeight}, {"weight_hh", Role::kWeight}, kBias},
       .axes = AxisRule::kCanonical,
       .shape = rules::lstm,
       .macs = rules::recurrent_macs},
      {.op = Op::kGru,
       .name = "gru",
       .doc =
           "The whole sequence N,T,F from a zero state to the hidden states N,T,U: with a = x W_ih^T + b_ih and "
           "c = h W_hh^T + b_hh, r = sigm(a_r + c_r), z = sigm(a_z + c_z), n = tanh(a_n + r c_n), "
           "h = (1 - z) n + z h. The rows of W_ih 3U,F and W_hh 3U,U are the gates in the order r, z, n; "
           "there are both biases or none.",
       .attributes = {reverse},
       .params = {{"weight_ih", Role::kWeight},
                  {"weight_hh", Role::kWeight},
                  {"bias_ih", Role::kBias, true},
                  {"bias_hh", Role::kBias, true}},
       .axes = AxisRule::kCanonical,
       .shape = rules::gru,
       .macs = rules::recurrent_macs},
  };
}

std::vector<OpInfo> elementwise_rows() {
  std::vector<OpInfo> rows;
  for (const Elementwise& row : elementwise_ops()) {
    OpInfo info{.op = row.op, .name = row.name, .doc = row.doc, .attributes = row.attributes};
    info.min_inputs = info.max_inputs = row.inputs;
    info.shape = rules::elementwise;
    rows.push_back(std::move(info));
  }
  return rows;
}

std::vector<OpInfo> value_ops() {
  return {
      {.op = Op::kConstant,
       .name = "constant",
       .doc = "A scalar.",
       .attributes = {real("value", 0.0, "the number")},
       .min_inputs = 0,
       .max_inputs = 0,
       .shape = rules::constant},
      {.op = Op::kParameter,
       .name = "parameter",
       .doc =
           "A parameter as a value, of its own shape (learned queries, position tables, scales of layers).",
       .attributes = {},
       .min_inputs = 0,
       .max_inputs = 0,
       .params = {{"weight", Role::kTable}},
       .shape = rules::parameter},
      {.op = Op::kWhere,
       .name = "where",
       .doc = "a where the condition (the first input) holds, else b; sizes are equal or 1.",
       .attributes = {},
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = rules::where},
  };
}

OpInfo reduction(Op op, const char* name, const char* doc, bool sums) {
  return {.op = op,
          .name = name,
          .doc = doc,
          .attributes = {ints_required("axes", 0, "counted from N = 0, which stays"),
                         flag("keepdims", false, "the axes stay, with size 1")},
          .axes = AxisRule::kAxis,
          .sums = sums,
          .shape = rules::reduction};
}

// Over one axis: frameworks have no product over several at once that all agree on.
OpInfo prod() {
  OpInfo row = reduction(Op::kProd, "prod", "The product over one axis.", true);
  row.attributes[0] = integer("axis", 1, "counted from N = 0, which stays");
  return row;
}

std::vector<OpInfo> axis_ops() {
  const AttrSpec axis = integer("axis", 1, "counted from N = 0");
  return {
      reduction(Op::kSum, "sum", "The sum over axes.", true),
      reduction(Op::kMean, "mean", "The mean over axes.", true),
      reduction(Op::kMax, "max", "The maximum over axes; equal ones share the gradient evenly.", false),
      reduction(Op::kMin, "min", "The minimum over axes; equal ones share the gradient evenly.", false),
      reduction(Op::kLogsumexp, "logsumexp", "log(sum(exp(x))) over axes.", true),
      prod(),
      {.op = Op::kArgmax,
       .name = "argmax",
       .doc =
           "The place of the largest element along one axis, the first of equal ones; the axis goes, and no "
           "gradient passes.",
       .attributes = {axis},
       .axes = AxisRule::kCanonical,
       .shape = rules::argmax},
      {.op = Op::kCumsum,
       .name = "cumsum",
       .doc = "The sum of all elements up to this one along one axis.",
       .attributes = {axis},
       .axes = AxisRule::kAxis,
       .sums = true,
       .shape = rules::softmax},
      {.op = Op::kLogSoftmax,
       .name = "log_softmax",
       .doc = "x - log(sum(exp(x))) along one axis.",
       .attributes = {axis},
       .axes = AxisRule::kAxis,
       .sums = true,
       .shape = rules::softmax},
      {.op = Op::kSlice,
       .name = "slice",
       .doc = "The elements begin, begin + step, ... before end along one axis.",
       .attributes = {axis, integer("begin", 0, "first place"), integer("end", 1, "place after the last one"),
                      integer("step", 1, "at least 1")},
       .axes = AxisRule::kAxis,
       .shape = rules::slice},
      {.op = Op::kFlip,
       .name = "flip",
       .doc = "The elements in reverse order along axes.",
       .attributes = {ints_required("axes", 0, "counted from N = 0, which stays")},
       .axes = AxisRule::kAxis,
       .shape = rules::flip},
      {.op = Op::kExpand,
       .name = "expand",
       .doc =
           "x, or a number, repeated along the axes in which it has size 1, with as many rows as the second input.",
       .attributes = {ints_required("shape", 0, "the new sizes, N first")},
       .min_inputs = 2,
       .max_inputs = 2,
       .axes = AxisRule::kAxis,
       .shape = rules::expand},
  };
}

OpInfo gather() {
  return {
      .op = Op::kGather,
      .name = "gather",
      .doc =
          "The elements of x along one axis at places that rows name of their own: x is N,V,C and the second "
          "input i32 N,E, the result N,E,C; the axes before the last one of the places are those of x.",
      .attributes = {integer("axis", 1, "counted from N = 0")},
      .min_inputs = 2,
      .max_inputs = 2,
      .axes = AxisRule::kCanonical,
      .integer_input = 1,
      .bound = rules::gathered,
      .shape = rules::gather};
}

OpInfo scatter_add() {
  OpInfo row = gather();
  row.op = Op::kScatterAdd;
  row.name = "scatter_add";
  row.doc =
      "What goes to the same place is added up: x is N,E,C and the second input, the places in i32 N,E, the "
      "result N,size,C with 0 where nothing goes; its axes are as in `gather`, whose gradient it is.";
  row.attributes.push_back(integer("size", 1, "number of places along the axis"));
  row.sums = true;
  row.bound = rules::scattered;
  row.shape = rules::scatter_add;
  return row;
}

// A product, a change of type, a choice of elements, a norm.
std::vector<OpInfo> mixed_ops() {
  const AttrSpec axis = integer("axis", 1, "counted from N = 0");
  return {
      {.op = Op::kMatmul,
       .name = "matmul",
       .doc = "The matrix product over the last two axes; sizes of the axes before them are equal or 1.",
       .attributes = {},
       .min_inputs = 2,
       .max_inputs = 2,
       .axes = AxisRule::kCanonical,
       .shape = rules::matmul,
       .macs = rules::matmul_macs},
      {.op = Op::kCast,
       .name = "cast",
       .doc = "The number without its fraction, as an integer; no gradient passes.",
       .attributes = {word("to", {"i32"}, "the new type")},
       .shape = rules::cast},
      {.op = Op::kTake,
       .name = "take",
       .doc =
           "The elements of x at the places that a vector of integers (the second input, without N) names, "
           "along one axis.",
       .attributes = {axis},
       .min_inputs = 2,
       .max_inputs = 2,
       .axes = AxisRule::kAxis,
       .shape = rules::take},
      gather(),
      scatter_add(),
      {.op = Op::kStopGradient,
       .name = "stop_gradient",
       .doc = "x; no gradient passes.",
       .attributes = {},
       .shape = rules::same},
      {.op = Op::kGroupNorm,
       .name = "group_norm",
       .doc =
           "Normalises each of `groups` groups of channels of N,C,H,W with its biased variance over channels "
           "and places (Wu & He 2018); with as many groups as channels instance normalisation.",
       .attributes = {integer("groups", 1, "divides C"), real("eps", 1e-5, "added to the variance")},
       .params = {{"weight", Role::kScale, true}, {"bias", Role::kShift, true}},
       .axes = AxisRule::kSpatial,
       .shape = rules::group_norm},
  };
}

AttrSpec loss_reduction() { return word("reduction", {"mean", "sum"}, "over all targets"); }

// A loss of a prediction and a target of its shape.
OpInfo elementwise_loss(Op op, const char* name, const char* doc) {
  return {.op = op,
          .name = name,
          .doc = doc,
          .attributes = {loss_reduction()},
          .min_inputs = 2,
          .max_inputs = 2,
          .axes = AxisRule::kCanonical,
          .shape = rules::mse};
}

std::vector<OpInfo> loss_ops() {
  return {
      {.op = Op::kSoftmaxCrossEntropy,
       .name = "softmax_cross_entropy",
       .doc = "-log softmax(logits)[label] on the last axis; logits, not probabilities.",
       .attributes = {loss_reduction(),
                      real("label_smoothing", 0.0,
                           "s: the target is 1 - s at the label, and s / classes everywhere besides"),
                      optional_integer(
                          "ignore_index",
                          "targets equal to it count neither in the sum nor in the mean's divisor; "
                          "where all are, the loss is 0")},
       .min_inputs = 2,
       .max_inputs = 2,
       .axes = AxisRule::kCanonical,
       .integer_input = 1,
       .bound = rules::classes,
       .shape = rules::softmax_cross_entropy},
      elementwise_loss(Op::kMse, "mse", "(prediction - target)^2, reduced over all elements."),
      elementwise_loss(Op::kL1, "l1", "|prediction - target|, reduced over all elements."),
      elementwise_loss(
          Op::kBceWithLogits, "bce_with_logits",
          "max(x, 0) - x t + log(1 + exp(-|x|)): the binary cross entropy of the logit x and the probability t, "
          "reduced over all elements."),
      {.op = Op::kCtc,
       .name = "ctc",
       .doc =
           "-log p(labels) of a row (Graves et al. 2006): p is the sum, over all paths of a class in each of the "
           "T frames that give the labels once repeats are merged and then blanks (class 0) removed, of the "
           "products of softmax(logits)[frame, class]. Logits N,T,C, all frames count; labels N,L in 1..C-1, "
           "padded with -1 at the end, an input that no other op reads. Reduced over rows, whatever their "
           "length. T frames hold a row if its labels and the pairs of equal neighbours in it are at most T.",
       .attributes = {loss_reduction()},
       .min_inputs = 2,
       .max_inputs = 2,
       .axes = AxisRule::kCanonical,
       .integer_input = 1,
       .bound = rules::classes,
       .shape = rules::ctc},
  };
}

std::vector<OpInfo> make_table() {
  std::vector<OpInfo> table = parameterised_ops();
  for (const auto& part : {activation_ops(), pooling_ops(), shape_ops(), network_ops(), elementwise_rows(),
                           value_ops(), axis_ops(), mixed_ops(), loss_ops()}) {
    table.insert(table.end(), part.begin(), part.end());
  }
  for (size_t i = 0; i < table.size(); ++i) assert(table[i].op == static_cast<Op>(i));
  return table;
}

std::string fallback_text(const AttrSpec& spec) {
  if (spec.required) return "required";
  if (spec.optional) return "none";
  struct Printer {
    std::string operator()(int64_t n) const { return std::to_string(n); }
    std::string operator()(double d) const { return fmt::format("{}", d); }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(const Ints& n) const { return join(n, ","); }
    std::string operator()(const std::string& s) const { return s; }
  };
  return std::visit(Printer{}, spec.fallback);
}

}  // namespace

const std::vector<OpInfo>& op_table() {
  static const std::vector<OpInfo> table = make_table();
  return table;
}

const OpInfo& info(Op op) { return op_table()[static_cast<size_t>(op)]; }

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo& row : op_table()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpInfo& row : op_table()) names.push_back(row.name);
  return names;
}

std::string ops_markdown() {
  std::string text =
      "# Ops\n\nMade from the op table (`bakeoff ops --markdown`). Sizes: N is the batch; activations are "
      "N,C,H,W "
      "or N,T,F.\n\n| op | inputs | parameters | attributes | meaning |\n|---|---|---|---|---|\n";
  for (const OpInfo& row : op_table()) {
    std::vector<std::string> params, attributes;
    for (const ParamSpec& p : row.params) params.push_back(p.slot + (p.optional ? " (optional)" : ""));
    for (const AttrSpec& a : row.attributes) {
      attributes.push_back(fmt::format("`{}` = {}: {}{}", a.name, fallback_text(a), a.doc,
                                       a.words.empty() ? "" : fmt::format(" ({})", join(a.words, ", "))));
    }
    const std::string inputs = row.min_inputs == row.max_inputs
                                   ? std::to_string(row.min_inputs)
                                   : fmt::format("{} to {}", row.min_inputs, row.max_inputs);
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.name, inputs, join(params, ", "),
                        join(attributes, "<br>"), row.doc);
  }
  return text;
}

Node node_with_defaults(Op op) {
  Node node{.op = op};
  for (const AttrSpec& spec : info(op).attributes) {
    if (!spec.required && !spec.optional) node.attributes.push_back({spec.name, spec.fallback});
  }
  return node;
}

void set_attribute(Node& node, std::string_view name, AttrValue value) {
  std::vector<Attribute> ordered;
  for (const AttrSpec& spec : info(node.op).attributes) {
    if (spec.name == name) {
      ordered.push_back({spec.name, std::move(value)});
      continue;
    }
    for (Attribute& old : node.attributes) {
      if (old.name == spec.name) ordered.push_back(std::move(old));
    }
  }
  node.attributes = std::move(ordered);
}

}  // namespace bakeoff::ir
