#pragma once

// What the ops know of the evaluation that they are part of: its weights, its options, and the running
// statistics that it updates.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/workload.h"
#include "referee/parallel.h"
#include "tensor/tensor.h"

namespace bakeoff::referee {

using Weights = std::vector<tensor::Tensor>;  // by ParamId; running statistics included

// Dropout with masks that any program can compute again (referee/dropout.h).
struct DropoutMasks {
  uint64_t seed = 0;
  uint64_t step = 0;
};

// Deviations of ports that no attribute of an op expresses. The defaults are those of the referee.
struct Deviations {
  double label_smoothing =
      0;  // softmax_cross_entropy: (1 - s) onehot + s / classes instead of the label alone
  bool counts_ignored = false;  // ignored targets count in the divisor of the mean
  bool ctc_by_length = false;   // ctc: each row divided by its number of labels, at least 1
  double attention_scale = 1;   // factor of the products of queries and keys, besides 1 / sqrt D
};

// A ReLU's input so near to zero, or two values of a maximum so near to each other, that rounding in float32
// decides which way the gradient goes.
enum class Edges {
  kExact,
  kOpen,    // such a ReLU passes the gradient on; such a maximum gives it to the first value
  kClosed,  // such a ReLU stops the gradient; such a maximum gives it to the last value
  // As kOpen, and a ReLU whose input is exactly 0 passes the gradient on: convolutions by transforms (cuDNN's, on GPUs)
  // make rounding of a sum that is 0.
  kOpenAtZero,
};
// Values are near to each other if they differ by at most this share of the input's root mean square. An evaluation may
// give each input its own share (EvalOptions::edge_of).
inline constexpr double kEdge = 2e-5;

struct EvalOptions {
  bool train = true;  // batch statistics in batch_norm, dropout if masks are given
  bool gradients = true;
  bool activations = false;                  // keep every value
  std::optional<DropoutMasks> dropout = {};  // none: dropout passes its input on
  // Rounds every value and every gradient of a value to float32 once it is complete: about what a computation
  // in float32 loses at least.
  bool round_to_float32 = false;
  Edges edges = Edges::kExact;
  std::vector<double> edge_of = {};  // the share for each value of the workload; empty: kEdge for all
  Deviations deviations = {};
  int threads = usual_threads();
  // Takes each gradient of a trained parameter as soon as it is complete, which is not kept then.
  std::function<void(ir::ParamId, const tensor::Tensor&)> take_gradient = {};
};

// Running statistics after one step: running = (1 - momentum) running + momentum batch, where the batch's
// variance is the biased one (divisor n) or the unbiased one (n - 1; torch). By ParamId; tensors without data
// for parameters that are not running statistics, and all of them so when not training.
struct RunningStatistics {
  Weights biased;
  Weights unbiased;
};

}  // namespace bakeoff::referee
