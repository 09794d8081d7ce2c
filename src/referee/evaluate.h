#pragma once

// The referee: a float64 interpreter of ir::Workload with reverse-mode differentiation. Every
// framework has to match what it computes.
//
//   TRY(Evaluation e, evaluate(workload, weights, {images, labels}));
//   e.loss; e.gradients[workload.find_parameter("conv1.weight")];
//
// Formulas are those of ir/op_table.h. The result does not depend on the number of threads: work is cut into
// fixed pieces and sums are taken in a fixed order. Processors with and without FMA differ in the last bits.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"
#include "referee/eval_options.h"
#include "tensor/tensor.h"

namespace bakeoff::referee {

using Inputs = std::vector<tensor::AnyTensor>;  // by input index: Tensor for f32, IntTensor for i32

struct Evaluation {
  double loss = 0;
  tensor::Tensor prediction;  // Workload::prediction()
  Weights gradients;          // by ParamId: dloss/dparameter; without data for running statistics
  RunningStatistics running;
  std::vector<tensor::AnyTensor> activations;  // by ValueId, if asked for
};

// Fails where the workload is invalid, weights or inputs do not fit it, an integer lies outside its bound
// (the message names input, row, value and bound), or batch_norm has one value per channel in training.
Result<Evaluation> evaluate(const ir::Workload& workload, const Weights& weights, const Inputs& inputs,
                            const EvalOptions& options = {});

// The input checks of evaluate() alone: count, types, shapes, one batch size, labels and ids within bounds.
// Gives the batch size.
Result<int64_t> check_inputs(const ir::Workload& workload, const Inputs& inputs);

}  // namespace bakeoff::referee
