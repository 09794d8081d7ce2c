#pragma once

// What one op is to the referee: a forward and a backward function, in a table that covers ir::op_table().
// Internal to this room.
//
// Forward makes the node's value. Backward adds to the gradients of the node's inputs and parameters, given
// the gradient of its output. Shapes have been checked before: a misfit here is a bug.

#include <string_view>
#include <vector>

#include "ir/workload.h"
#include "referee/eval_options.h"
#include "tensor/tensor.h"

namespace bakeoff::referee {

using tensor::AnyTensor;
using tensor::IntTensor;
using tensor::Shape;
using tensor::Tensor;

// What forward keeps for backward; each op defines what the numbers are.
struct Saved {
  std::vector<double> reals;
  std::vector<int64_t> indices;
};

struct NodeContext {
  const ir::Node& node;
  int index = 0;  // of the node
  std::vector<const AnyTensor*> inputs;
  Shape shape;  // of the output, with the batch
  const Weights& weights;
  const EvalOptions& options;
  Saved& saved;
  RunningStatistics& running;  // updated by forward in training

  const Tensor& input(size_t i) const { return std::get<Tensor>(*inputs[i]); }
  const IntTensor& integers(size_t i) const { return std::get<IntTensor>(*inputs[i]); }
  // Null where an optional parameter is missing.
  const Tensor* param(std::string_view slot) const {
    const ir::ParamId id = node.param(slot);
    return id < 0 ? nullptr : &weights[static_cast<size_t>(id)];
  }
  Tensor make() const { return tensor::zeros(shape); }
  // Distance from an edge up to which a value counts as on it (Edges); 0 where edges are exact.
  double edge() const;
};

// Where backward adds its results; null if none is needed, as of a frozen parameter.
struct Gradients {
  std::vector<Tensor*> inputs;
  std::vector<Tensor*> params;  // by ParamId
  Tensor* param(const ir::Node& node, std::string_view slot) const {
    const ir::ParamId id = node.param(slot);
    return id < 0 ? nullptr : params[static_cast<size_t>(id)];
  }
};

struct OpFunctions {
  ir::Op op;
  AnyTensor (*forward)(const NodeContext&);
  // `output`: the value that forward made; `grad`: dloss/doutput.
  void (*backward)(const NodeContext&, const Tensor& output, const Tensor& grad, const Gradients&);
};

// Null for an op that the referee lacks (a test demands every op).
const OpFunctions* find_functions(ir::Op op);

// What dropout multiplies element `index` by.
double dropout_factor(const NodeContext& c, uint64_t index, double rate);

// The parts of the table, by source file.
std::vector<OpFunctions> dense_ops();        // conv1d conv2d conv3d linear embedding
std::vector<OpFunctions> norm_ops();         // batch_norm layer_norm rms_norm group_norm softmax lrn
std::vector<OpFunctions> pointwise_ops();    // dropout relu gelu sigmoid tanh add mul
std::vector<OpFunctions> elementwise_ops();  // the rows of ir/elementwise.h, constant parameter where
std::vector<OpFunctions> axis_ops();         // reductions, slice flip expand, matmul
std::vector<OpFunctions> pooling_ops();      // max and avg pools, global_avg_pool2d, resize
std::vector<OpFunctions> shape_ops();        // flatten reshape transpose pad concat
std::vector<OpFunctions> sequence_ops();     // position_embedding attention lstm gru
std::vector<OpFunctions> loss_ops();         // softmax_cross_entropy mse

}  // namespace bakeoff::referee
