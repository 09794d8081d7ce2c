#pragma once

// What the referee says about a recipe, computed once: its own numbers, and the files that contenders start
// from.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/lane.h"
#include "referee/evaluate.h"
#include "reference/dropout.h"

namespace bakeoff {

// How far rounding every value to float32 moves what the referee computes: relative distances, the larger of
// those with edges open and closed (referee::Edges).
struct RoundingDistance {
  double prediction = 0;
  std::vector<double> gradients = {};  // by ParamId
};

// What the referee says, computed once for all contenders.
struct Reference {
  referee::Weights weights = {};      // perturbed, rounded to float32: step 1 and 2 start here
  referee::Weights initial = {};      // the recipe's, rounded to float32: step 3 starts here
  referee::Inputs batch = {};         // rows [0, training.batch)
  referee::Evaluation at = {};        // at `weights`; to predict without gradients, in inference mode
  referee::Evaluation at32 = {};      // at `initial`
  RoundingDistance rounding = {};     // of at32
  tensor::Tensor prediction32 = {};   // to predict: in float64 from the initial weights
  referee::Weights updated = {};      // after one update from at.gradients
  std::vector<double> losses64 = {};  // step 2
  std::vector<double> losses32 = {};  // step 3, in float64 from the initial weights
  // Parameters after those steps. By ParamId beside them: the sum over elements of how far rounding of the
  // gradients alone moves a parameter (reference/rounding.h).
  referee::Weights after64 = {}, after32 = {};
  std::vector<double> noise64 = {}, noise32 = {};
  std::vector<std::string> batches = {};  // step 3: hashes
  DropoutReference dropout = {};          // step 4, from `weights`
  std::filesystem::path weights_file = {}, gradients_file = {}, initial_file = {};
};

// Steps in float64: what an optimizer keeps (momentum, second moments, a maximum of them) shows from the
// second update on. Of a small network as many as in float32: a schedule shows later.
inline constexpr int64_t kSteps64 = 4;
inline constexpr int64_t kCheapFlops64 = 1'000'000'000;  // that all steps may take then

Result<Reference> make_reference(const GateJob& job);

}  // namespace bakeoff
