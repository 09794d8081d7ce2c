#pragma once

// Model FLOPs and compulsory memory traffic of a training step, from the op table.
//
// FLOPs: 2 per multiply-accumulate of linear, conv2d, attention and lstm; elementwise work is not counted.
// Backward: the same again for the gradient of the weights, if they are not frozen, and for that of the input, if
// anything trained lies upstream. Bytes: every op reads its inputs and parameters once and writes its output once (4
// bytes each); backward reads the output's gradient, the inputs and the parameters, and writes the gradients of
// inputs and of parameters that are not frozen. The optimizer reads and writes parameter, gradient and state once.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "ir/workload.h"

namespace bakeoff::ir {

struct Cost {
  int64_t flops_forward = 0;
  int64_t flops_backward = 0;
  int64_t bytes_forward = 0;
  int64_t bytes_backward = 0;
  int64_t bytes_optimizer = 0;
  int64_t flops() const { return flops_forward + flops_backward; }
  int64_t bytes() const { return bytes_forward + bytes_backward + bytes_optimizer; }
  // The cost of a step of Scenario::kPredict. It counts the loss too, a few numbers a row, which such a step
  // does not compute.
  Cost forward() const { return {.flops_forward = flops_forward, .bytes_forward = bytes_forward}; }
  bool operator==(const Cost&) const = default;
};

Result<Cost> step_cost(const Workload& workload, const Optimizer& optimizer, int64_t batch);
// The cost of a step of training.scenario at training.batch.
Result<Cost> step_cost(const Workload& workload, const Training& training);

// The FLOPs of a step without products that are known to be 0: those of padding around pictures, and of keys that no
// query may see. A program may leave them out (native ones do); none that multiplies directly needs fewer.
Result<double> needed_flops(const Workload& workload, const Training& training);

// The cost of one op of the table, summed over the nodes of a workload, without the optimizer.
struct OpCost {
  Op op = Op::kRelu;
  Cost cost = {};
  bool operator==(const OpCost&) const = default;
};
// In the order in which the ops first appear.
Result<std::vector<OpCost>> cost_by_op(const Workload& workload, int64_t batch);

// Bytes of traffic per trained scalar of one optimizer update in float32: SGD 12, with momentum 20, RMSprop
// 20, with momentum 28, Adam 28.
int64_t optimizer_bytes_per_scalar(const Optimizer& optimizer);

}  // namespace bakeoff::ir
