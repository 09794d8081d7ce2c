#pragma once

// Training in float64, whose losses the first steps of a training in lower precision are compared with.

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "referee/evaluate.h"
#include "referee/optimizer.h"

namespace bakeoff::referee {

enum class VarianceForm { kBiased, kUnbiased };  // what enters the running variance

struct TrainOptions {
  VarianceForm running_variance = VarianceForm::kUnbiased;
  std::optional<uint64_t> dropout_seed = {};  // masks of DropoutMasks{seed, step}; none: no dropout
  int threads = usual_threads();
  // The evaluation of the first step, where it is known already.
  const Evaluation* first = nullptr;
  // Called with each step's number and evaluation, before the update.
  std::function<void(size_t, const Evaluation&)> watch = {};
  // Asked before each step; where it says so the training ends with an error.
  std::function<bool()> stop = {};
};

struct TrainingRun {
  std::vector<double> losses;  // before each update
  Weights weights;             // after the last update, running statistics included
  OptimizerState state;
};

// One update for each batch, in order, in float64 throughout.
Result<TrainingRun> train(const ir::Workload& workload, const ir::Optimizer& optimizer, Weights weights,
                          std::span<const Inputs> batches, const TrainOptions& options = {});

}  // namespace bakeoff::referee
