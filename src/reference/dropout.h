#pragma once

// Proof of dropout at the recipe's rates. Masks are random, so distributions are compared, in float32, with
// those of the referee's own random masks on the same rows: of whole batches that hold a few distinct rows,
// each repeated many times with different masks, and of single rows.
//
//   predictions  their mean, for each distinct row, along a few random directions; their mean squared distance
//                from that mean (the spread, each direction in units of its own), of all rows and of each
//                position in the batch; how far the mean over the rows of one step varies, which shows one mask
//                for all rows
//   loss         compared with the mean over the referee's rows
//   gradients    of every parameter, over steps: their mean; their spread, each element in units of its own;
//                how far they vary along their mean, which shows masks that are correlated
//   statistics   how far BatchNorm's running mean and variance have moved along the referee's mean move. A
//                normalisation undoes any scale in the loss and in the gradients: what is kept and not scaled
//                shows in its statistics alone
//   single rows  the share of a gradient's elements that are zero shows how many were dropped; the share of
//                each parameter in the squared norm of all gradients shows the scale of those that are kept.
//                Dividing the loss by a fixed batch size changes neither.
//
// Numbers that each step has are compared by their mean over steps and, if there are many steps, by their
// variance: two-sample t-tests, each at kChance. Two steps that draw the same masks differ by nothing,
// which chance cannot explain.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"
#include "plan/lane.h"
#include "records/trial.h"
#include "referee/evaluate.h"
#include "tensor/tensor.h"

namespace bakeoff {

// Mean and variance of `count` random draws.
struct Drawn {
  double mean = 0, variance = 0, count = 0;
};

// The same numbers for every step: steps x names.
struct StepNumbers {
  std::vector<std::string> names = {};
  std::vector<std::vector<double>> steps = {};
};

// What the referee draws. Empty `data`: the workload has no dropout.
struct DropoutReference {
  std::filesystem::path data = {};      // file of training.batch rows, few of them distinct
  int64_t distinct = 1;                 // row i equals row i % distinct
  tensor::Shape shape = {};             // shape of a prediction
  int64_t steps = 0, single_steps = 0;  // steps that a contender takes: of whole batches, of one row
  int64_t compared_steps = 0;           // steps that the referee takes of whole batches
  // Predictions, by distinct row and direction.
  std::vector<std::vector<Drawn>> directions = {};
  Drawn spread = {};
  Drawn loss = {};  // loss of one row; count 0: the loss is not a mean over rows
  // Over `gradient_steps` steps: mean and variance of every element, by ParamId.
  referee::Weights gradients = {}, variances = {};
  int64_t gradient_steps = 0;
  std::vector<bool> idle = {};          // by ParamId: its gradient is zero except for rounding
  std::vector<bool> steady = {};        // by ParamId: no mask changes its gradient, except for rounding
  StepNumbers batches = {}, rows = {};  // numbers of further steps, not of `gradient_steps`
  // BatchNorm's running statistics, by ParamId: where they start, their mean move with a biased variance, and
  // the moves of the further steps along it, with a biased variance and with an unbiased one. Empty tensors:
  // parameters of other kinds.
  referee::Weights statistics = {}, moves = {};
  StepNumbers moved_biased = {}, moved_unbiased = {};
};

// The result of one training step from the recipe's initial state, with new masks.
struct DropoutStep {
  tensor::Tensor prediction = {};
  double loss = 0;
  referee::Weights gradients = {};   // by ParamId; parameters that are not trained have empty tensors
  referee::Weights statistics = {};  // by ParamId: running statistics after the step; else empty tensors
};

// Takes a step on the first `count` rows of the reference's data.
using DropoutSteps = std::function<Result<DropoutStep>(int64_t count)>;

// Whether training draws any mask.
bool has_dropout(const ir::Workload& workload);

// Writes the rows to the job's folder and draws. `weights`: where all steps start.
Result<DropoutReference> draw_dropout(const GateJob& job, const referee::Weights& weights);

// Takes the reference's steps and compares the results. If one differs, `explanation` says what is known.
// `unbiased_variance`: of the contender's running variances. Error: a step of a whole batch failed.
Result<ParityCheck> compare_dropout(const GateJob& job, const DropoutReference& r, const DropoutSteps& steps,
                                    bool unbiased_variance, std::string& explanation);

}  // namespace bakeoff
