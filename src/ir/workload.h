#pragma once

// A workload: a model with its loss, as plain values. Activations are N,C,H,W or N,T,F; convolution kernels
// O,I,kH,kW; linear weights O,I. Every node has one output. The losses come last: one, or several and the nodes
// that make their weighted sum of them (add, and mul with a constant). The last node computes the scalar loss.
//
//   workload mlp(x: f32[N,100], y: i32[N]) {
//     h1 = linear(x; weight=fc1.weight[128,100], bias=fc1.bias[128])
//     h2 = relu(h1)
//     logits = linear(h2; weight=fc2.weight[10,128], bias=fc2.bias[10])
//     loss = softmax_cross_entropy(logits, y) reduction=mean
//   }

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/type.h"

namespace bakeoff::ir {

enum class Op {
  kConv1d,
  kConv2d,
  kConv3d,
  kConvTranspose1d,
  kConvTranspose2d,
  kConvTranspose3d,
  kLinear,
  kBatchNorm,
  kLayerNorm,
  kRmsNorm,
  kEmbedding,
  kDropout,
  kRelu,
  kGelu,
  kSigmoid,
  kTanh,
  kSoftmax,
  kMaxPool1d,
  kMaxPool2d,
  kMaxPool3d,
  kAvgPool1d,
  kAvgPool2d,
  kAvgPool3d,
  kGlobalAvgPool2d,
  kResize,
  kFlatten,
  kReshape,
  kTranspose,
  kPad,
  kConcat,
  kJoin,
  kAdd,
  kMul,
  kLrn,
  kPositionEmbedding,
  kAttention,
  kLstm,
  kGru,
  // Element by element: the rows of ir/elementwise.cc, in their order.
  kNeg,
  kAbs,
  kSign,
  kFloor,
  kCeil,
  kRound,
  kSquare,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSin,
  kCos,
  kAtan,
  kErf,
  kSilu,
  kHardSwish,
  kHardSigmoid,
  kElu,
  kSelu,
  kLeakyRelu,
  kSoftplus,
  kMish,
  kSoftsign,
  kLogSigmoid,
  kClip,
  kSub,
  kDiv,
  kPow,
  kMaximum,
  kMinimum,
  kLess,
  kLessEqual,
  kEqual,
  kLogicalAnd,
  kLogicalOr,
  kLogicalNot,
  // Values that no input gives, and choices between values.
  kConstant,
  kParameter,
  kWhere,
  // Over axes.
  kSum,
  kMean,
  kMax,
  kMin,
  kLogsumexp,
  kProd,
  kArgmax,
  kCumsum,
  kLogSoftmax,
  kSlice,
  kFlip,
  kExpand,
  kMatmul,
  kCast,
  kTake,
  kGather,
  kScatterAdd,
  kStopGradient,
  kGroupNorm,
  kSoftmaxCrossEntropy,
  kMse,
  kL1,
  kBceWithLogits,
  kCtc,
};

// conv1d, conv2d or conv3d.
bool is_conv(Op op);
// conv_transpose1d, conv_transpose2d or conv_transpose3d.
bool is_conv_transpose(Op op);
// lstm or gru.
bool is_recurrent(Op op);
// softmax_cross_entropy, mse, l1, bce_with_logits or ctc.
bool is_loss(Op op);

using AttrValue = std::variant<int64_t, double, bool, std::vector<int64_t>, std::string>;

struct Attribute {
  std::string name;
  AttrValue value;
  bool operator==(const Attribute&) const = default;
};

// A value is an input of the workload or the output of a node: inputs come first, then nodes in order.
using ValueId = int;
// Index into Workload::parameters.
using ParamId = int;

// What a parameter is for: decides its initial value and whether it is trained.
// kCache holds keys or values of words that were read before: no file has it, a step of decoding writes it.
enum class Role { kWeight, kBias, kScale, kShift, kTable, kRunningMean, kRunningVar, kCache };

struct Parameter {
  std::string name;  // dotted, human: "conv1.weight"
  Shape shape;
  Role role = Role::kWeight;
  bool frozen = false;  // keeps its value: tables of constants, weights that are not to be trained
  std::vector<double> values = {};  // of a frozen one, row-major, where the text has them; else empty
  // Of a trained one whose initial values do not follow from its role: uniform in [-init, init); 0: all zero.
  std::optional<double> init = {};
  bool operator==(const Parameter&) const = default;
};

// Whether the optimizer updates the parameter. False for frozen ones, and for running statistics, which the
// forward pass updates.
bool trainable(const Parameter& parameter);

struct Slot {
  std::string name;  // the op's name for it: "weight"
  ParamId param = 0;
  bool operator==(const Slot&) const = default;
};

struct Node {
  Op op = Op::kRelu;
  std::string output = {};  // name of its value
  std::vector<ValueId> inputs = {};
  std::vector<Slot> params = {};           // in the op table's order; optional ones may be missing
  std::vector<Attribute> attributes = {};  // all of them, in the op table's order
  bool operator==(const Node&) const = default;

  int64_t integer(std::string_view attribute) const;
  double real(std::string_view attribute) const;
  bool flag(std::string_view attribute) const;
  const std::vector<int64_t>& integers(std::string_view attribute) const;
  const std::string& word(std::string_view attribute) const;
  bool has_attribute(std::string_view attribute) const;
  // The axes that a reduction goes over: `axes`, or `axis` alone.
  std::vector<int64_t> reduced_axes() const;
  // The parameter in a slot, or -1 where an optional one is missing.
  ParamId param(std::string_view slot) const;
  bool has(std::string_view slot) const { return param(slot) >= 0; }
};

struct Input {
  std::string name;
  Type type;
  bool operator==(const Input&) const = default;
};

struct Workload {
  std::string name;
  std::vector<Input> inputs;
  std::vector<Parameter> parameters;  // in order of first use
  std::vector<Node> nodes;            // in order of evaluation
  bool operator==(const Workload&) const = default;

  bool has(Op op) const;  // among its nodes
  int value_count() const { return static_cast<int>(inputs.size() + nodes.size()); }
  bool is_input(ValueId id) const { return id < static_cast<int>(inputs.size()); }
  // A number that the workload states.
  bool is_constant(ValueId id) const { return !is_input(id) && producer(id).op == Op::kConstant; }
  ValueId output_of(int node) const { return static_cast<int>(inputs.size()) + node; }
  // The node that computes `id`; not for inputs.
  const Node& producer(ValueId id) const { return nodes[static_cast<size_t>(id) - inputs.size()]; }
  const std::string& value_name(ValueId id) const;
  ParamId find_parameter(std::string_view name) const;  // -1 if unknown
  // The number of nodes before the first loss: the model.
  int model_end() const;
  const Node& first_loss() const { return nodes[static_cast<size_t>(model_end())]; }
  // The value that the first loss compares with its target: what `predict` returns.
  ValueId prediction() const { return first_loss().inputs[0]; }
  // What a script that predicts gives: the prediction, or the values that it joins.
  std::vector<ValueId> predictions() const;
  int join() const;  // the node that joins them; -1: there is one
  // What the model gives the losses: the prediction, then other values that they read, without inputs
  // (computed targets, other predictions), each once.
  std::vector<ValueId> outputs() const;
  ValueId loss() const { return value_count() - 1; }
  // Number of trained scalars.
  int64_t parameter_count() const;
  int64_t frozen_count() const;  // of those that keep their values; running statistics are neither
};

// The loss of a workload is the sum of weight times loss over these, in order.
struct LossTerm {
  int node = 0;  // a loss
  double weight = 1;
};
std::vector<LossTerm> loss_terms(const Workload& workload);

// Any convolution, transposed or not.
bool has_conv(const Workload& workload);

// The label that a loss leaves out, if it leaves out one.
std::optional<int64_t> ignore_index(const Node& loss);
// The padding_idx of an embedding; none where it trains all rows.
std::optional<int64_t> padding_idx(const Node& embedding);

// Indices of the nodes that read `id`, in order.
std::vector<int> consumers(const Workload& workload, ValueId id);

}  // namespace bakeoff::ir
