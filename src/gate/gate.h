#pragma once

// The parity gate: does a contender compute what the recipe says? Proven before any clock starts.
//
// 1. float64, from perturbed weights, on one batch: prediction, loss, every gradient, running statistics, and
//    the parameters after one optimizer update from given gradients, against the referee.
// 2. float64, the contender's own training step: the losses of a few steps, and the parameters after them, as
//    a share of how far they have moved. Rounding is out of the way, so any other meaning of optimizer or
//    state shows, at any learning rate.
// 3. float32, from the recipe's initial weights, exactly as it will be timed: the loss of every step, the
//    parameters after them, and the hash of every batch of an epoch, as its own pipeline delivers them
//    (data/batch_hashes.h). Then prediction and gradients of the first batch: a contender that rounds more
//    than float32 does is another contender (gate/gate_variants.h).
// 4. float32, with the recipe's dropout: predictions, loss and gradients over many draws of masks, compared
//    with the referee's own draws (gate/gate_dropout.h).
//
// Results decide. Outputs of layers are asked for where a result differs, to say where that begins.
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
#include "plan/lane.h"
#include "records/trial.h"
#include "referee/evaluate.h"
#include "reference/reference.h"
#include "worker/worker.h"

namespace bakeoff {

// Tolerances: relative, of a tensor's norm (Frobenius) or of a loss.
struct Tolerances {
  double loss64 = 1e-10;
  double output64 = 1e-9;
  double gradient64 = 1e-8;
  double update64 = 1e-8;
  double buffer64 = 1e-8;
  double losses64 = 1e-8;
  // Parameters after the float64 steps: of the sum of absolute moves. Beside it ten times what rounding does.
  double moved64 = 1e-8;
  // float32 loss of step k: first + k * growth. Rounding noise is amplified by every update.
  double losses32_first = 1e-5;
  double losses32_growth = 2e-5;
  // A float32 prediction. Rounding every sum of K products once to 24 bits leaves about 2^-24 sqrt(K) of a
  // layer's norm, some 1e-6 over the layers of the networks that ship. A layer that rounds its inputs to the
  // 11 bits of TF32 or float16 loses about 3e-4, one in bfloat16 2e-3: the tolerance lies between, a factor 6
  // below.
  double output32 = 5e-5;
  // float32 gradients of the first batch, each of its norm: the same reasoning; honest frameworks are within
  // 1e-5 on the networks that ship. A ReLU whose input lies so near to zero that rounding decides moves the
  // gradients before it by a jump, 1e-2 in ResNet-50: where the referee's own values, rounded to float32, with
  // such edges open or closed, are further away than a `rounding_factor`th of this, the factor times that.
  double gradient32 = 5e-5;
  double rounding_factor = 4;
  // Parameters after the float32 steps: the same of all parameters together, and of each.
  double moved32 = 1e-2;
  double moved32_each = 0.25;
};

// The check of gradients in float32, whose error is shown as the contender's distance.
inline constexpr const char* kGradients32 = "float32 gradients";

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

}  // namespace bakeoff
