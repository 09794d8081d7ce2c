#pragma once

// The spellings of ops that are one call, or a few, in every framework.

#include "ir/spelling.h"
#include "ir/workload.h"

namespace bakeoff::ir {

// A loss of a prediction {0} and a target {1}.
struct LossSpelling {
  std::string torch;     // a function that reduces
  std::string libtorch;  // of torch::nn::functional
  std::string options;   // the class of its options
  std::string jax;       // the losses of all elements
  std::string tensorflow;
  std::string keras;  // the class of the mean, with its arguments
  std::string
      keras_terms;  // the loss of y_pred and y_true, for a sum over all elements; empty: reduction="sum"
};
const LossSpelling& loss_spelling(Op op);
// The label_smoothing of a loss; 0 where it has none.
double label_smoothing(const Node& loss);

// Null for an op that emitters print in functions of their own.
const Spellings* spellings(Op op);

}  // namespace bakeoff::ir
