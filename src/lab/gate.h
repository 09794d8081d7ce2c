#pragma once

// The parity gate: does a contender compute what the recipe says? Proven before any clock starts.
//
// 1. float64, from perturbed weights, on one batch: prediction, loss, every gradient, running statistics, and
// the
//    parameters after one optimizer update from given gradients, against the referee.
// 2. float64, the contender's own training step: the losses of a few steps. Rounding is out of the way, so
// any
//    other meaning of optimizer or state shows.
// 3. float32, from the recipe's initial weights, exactly as it will be timed: the loss of every step; and the
//    hash of every batch of an epoch, as its own pipeline delivers them (lab/batch_hashes.h).
//
// In the scenario "predict" there is less to prove, and with the running statistics instead of the batch's:
// 1. float64, from perturbed weights: the prediction of one batch against the referee's.
// 3. float32, from the recipe's initial weights, by the very step that will be timed: the same.
//
// In the as-is track only 1 is run, its differences are reported, and nothing is refused.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "lab/trial.h"
#include "lab/worker.h"
#include "referee/evaluate.h"

namespace bakeoff::lab {

// What is to be proven.
struct GateJob {
  ir::Workload workload = {};
  ir::Training training = {};
  std::filesystem::path data = {};    // safetensors, raw values
  int64_t rows = 0;                   // in it
  int64_t steps = 10;                 // float32 losses
  std::filesystem::path folder = {};  // for the files below; exists
};

// What the referee says, computed once for all contenders.
struct Reference {
  referee::Weights weights = {};          // perturbed, rounded to float32: step 1 and 2 start here
  referee::Inputs batch = {};             // rows [0, training.batch)
  referee::Evaluation at = {};            // at `weights`; to predict without gradients, in inference mode
  tensor::Tensor prediction32 = {};       // to predict: in float64 from the initial weights
  referee::Weights updated = {};          // after one update from at.gradients
  std::vector<double> losses64 = {};      // step 2
  std::vector<double> losses32 = {};      // step 3, in float64 from the initial weights
  std::vector<std::string> batches = {};  // step 3: hashes
  std::filesystem::path weights_file = {}, gradients_file = {}, initial_file = {};
};

inline constexpr int64_t kSteps64 = 3;  // two updates: the second has the first one's state

// Tolerances: relative, of a tensor's norm (Frobenius) or of a loss.
struct Tolerances {
  double loss64 = 1e-10;
  double output64 = 1e-9;
  double gradient64 = 1e-8;
  double update64 = 1e-8;
  double buffer64 = 1e-8;
  double losses64 = 1e-8;
  // float32 loss of step k: first + k * growth. Rounding noise is amplified by every update.
  double losses32_first = 1e-5;
  double losses32_growth = 2e-5;
  // A float32 prediction. Rounding every sum of K products once to 24 bits leaves about 2^-24 sqrt(K) of a
  // layer's norm, some 1e-6 over the layers of the networks that ship. A layer that rounds its inputs to the
  // 11 bits of TF32 or float16 loses about 3e-4, one in bfloat16 2e-3: the tolerance lies between, a factor 6
  // below.
  double output32 = 5e-5;
};

Result<Reference> make_reference(const GateJob& job);

// Writes initial weights (float32) to `file`; gives them back rounded.
Result<referee::Weights> write_initial_weights(const ir::Workload& workload, uint64_t seed,
                                               const std::filesystem::path& file);

struct GateContender {
  Contender contender = {};
  std::filesystem::path script = {}, layout = {};
  WorkerSpec worker = {};  // dtype is set by the gate
  bool unbiased_running_var = false;
  // Of a precision variant: the same contender in float32 (lab/gate_variants.h). Empty: it is in float32.
  std::filesystem::path twin_script = {}, twin_layout = {};
  std::map<std::string, std::string> twin_options = {};
};

// Whether it compiles through a cache on disk (inductor): slowly the first time, quickly in later processes.
bool keeps_compilations(const Contender& contender);

// Steps 1 and 2 in a worker that has imported its framework in float64; it may serve several proofs. With
// `train` false step 2 is left out. What it finds is added to `parity`.
void prove_in(Worker& worker, const GateJob& job, const Reference& reference, const GateContender& contender,
              bool train, Parity& parity, const Tolerances& tolerances = {});

// Steps 1 and 2. The gradient of a parameter that is zero by mathematics (a bias before BatchNorm) is held
// against the largest gradient of the model.
Parity prove_float64(const GateJob& job, const Reference& reference, const GateContender& contender,
                     const Tolerances& tolerances = {});
// Step 3, added to what prove_float64 found.
void prove_float32(const GateJob& job, const Reference& reference, const GateContender& contender,
                   Parity& parity, const Tolerances& tolerances = {});

}  // namespace bakeoff::lab
