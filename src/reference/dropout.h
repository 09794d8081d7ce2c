#pragma once

// Dropout at the recipe's rates. Masks are random, so what is compared are distributions: of whole batches that
// hold a few distinct rows, each repeated many times with masks of its own, and of single rows. In float32,
// against the referee's own draws of the same rows:
//
//   predictions  their mean, by distinct row, along a few random directions; their mean squared distance from
//                that mean (spread), each direction in units of its own spread, of all rows and of each place in
//                the batch; how far the mean over the rows of one step strays: one mask for all rows shows there
//   loss         against the mean over the referee's rows
//   gradients    of every parameter, over steps: their mean; their spread, each element in units of its own; how
//                far they stray along their mean: masks that go together show there
//   single rows  the share of a gradient's elements that are zero is what was dropped; the share of each parameter
//                in the squared norm of all gradients tells the scale of what is kept. A loss that is divided by a
//                fixed batch size changes neither.
//
// A number of each step is compared by its mean over steps and, where there are many steps, by its variance:
// two-sample t-tests, each at kChance. Two steps that draw the same masks differ by nothing, which no luck
// explains.

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

// Mean and variance of what was drawn `count` times.
struct Drawn {
  double mean = 0, variance = 0, count = 0;
};

// The same numbers of every step: steps x names.
struct StepNumbers {
  std::vector<std::string> names = {};
  std::vector<std::vector<double>> steps = {};
};

// What the referee draws. Without `data` the workload has no dropout.
struct DropoutReference {
  std::filesystem::path data = {};      // training.batch rows, few of them distinct
  int64_t distinct = 1;                 // row i is row i % distinct
  tensor::Shape shape = {};             // of a prediction
  int64_t steps = 0, single_steps = 0;  // that a contender takes of whole batches, of one row
  int64_t compared_steps = 0;           // of whole batches, by the referee
  // Of predictions, by distinct row and direction.
  std::vector<std::vector<Drawn>> directions = {};
  Drawn spread = {};
  Drawn loss = {};  // of one row; count 0: the loss is not one of rows
  // Over `gradient_steps` steps: mean and variance of every element, by ParamId.
  referee::Weights gradients = {}, variances = {};
  int64_t gradient_steps = 0;
  std::vector<bool> idle = {};          // by ParamId: its gradient is zero, but for rounding
  StepNumbers batches = {}, rows = {};  // of other steps than those
};

// What one training step shows: of the recipe's initial state, with masks of its own.
struct DropoutStep {
  tensor::Tensor prediction = {};
  double loss = 0;
  referee::Weights gradients = {};  // by ParamId; empty tensors for what is not trained
};

// Takes a step on the first `count` rows of the reference's data; an error where it cannot.
using DropoutSteps = std::function<Result<DropoutStep>(int64_t count)>;

// Whether any mask is drawn in training.
bool has_dropout(const ir::Workload& workload);

// Writes the rows to the job's folder and draws. `weights`: from which steps start.
Result<DropoutReference> draw_dropout(const GateJob& job, const referee::Weights& weights);

// Takes the reference's steps and compares. Where one differs, `explanation` says what is known. An error: a
// step of a whole batch failed.
Result<ParityCheck> compare_dropout(const GateJob& job, const DropoutReference& r, const DropoutSteps& steps,
                                    std::string& explanation);

}  // namespace bakeoff
