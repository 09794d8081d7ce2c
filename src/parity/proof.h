#pragma once

// The parity gate: proves, before any clock starts, that a contender computes what the recipe says.
//
// One process of the contender serves all proofs:
//
// 1. float64, from perturbed weights, on one batch: prediction, loss, every gradient, running statistics, and
//    the parameters after one optimizer update from given gradients are compared with the referee's. Where
//    rows do not depend on each other and a step takes long, batches have fewer rows in proofs 1 and 2
//    (cut_job). A contender that does not pass on them starts anew with its own batch, which decides.
// 2. float64, with the contender's own training step: the losses of a few steps, and the parameters after
//    them (their error is divided by how far they have moved). Rounding is negligible there, so a different
//    optimizer or state shows at any learning rate.
// 3. float32, from the recipe's initial weights, exactly as it will be timed: the loss of every step, the
//    parameters after them, and the hash of every batch of an epoch that its own pipeline delivers
//    (data/batch_hashes.h). Then prediction and gradients of the first batch: a contender that rounds more
//    than float32 does is a different contender (parity/proof_variants.h).
// 4. float32, with the recipe's dropout: predictions, loss and gradients over many random masks, compared
//    with the referee's own random masks (parity/proof_dropout.h).
//
// Results decide. Outputs of layers are requested only if a result differs, to find where the difference
// begins.
//
// The scenario "predict" has fewer proofs, with the running statistics instead of the batch's:
// 1. float64, from perturbed weights: the prediction of one batch against the referee's.
// 3. float32, from the recipe's initial weights: the same, with the very step that will be timed.
//
// In the as-is track only proof 1 is run; its differences are reported, and no contender is refused.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/lane.h"
#include "records/trial.h"
#include "referee/evaluate.h"
#include "reference/reference.h"
#include "worker/worker.h"

namespace bakeoff {

// Tolerances, relative to a tensor's norm (Frobenius) or to a loss.
struct Tolerances {
  double loss64 = 1e-10;
  double output64 = 1e-9;
  double gradient64 = 1e-8;
  double update64 = 1e-8;
  double buffer64 = 1e-8;
  double losses64 = 1e-8;
  // Parameters after the float64 steps, relative to the sum of absolute moves, plus ten times the rounding
  // error.
  double moved64 = 1e-8;
  // Of learning rates, relative to the recipe's: a framework may compute its schedule in float32.
  double rate = 1e-6;
  // The float32 loss of step k may differ by first + k * growth: every update amplifies rounding errors. Where the
  // referee's own training with rounded values differs by more, ten times that is allowed, up to a tenth of the loss.
  double losses32_first = 1e-5;
  double losses32_growth = 2e-5;
  // A float32 prediction. Rounding every sum of K products once to 24 bits causes an error of about 2^-24
  // sqrt(K) of a layer's norm, some 1e-6 over the layers of the shipped networks. A layer that rounds its
  // inputs to the 11 bits of TF32 or float16 causes about 3e-4, one in bfloat16 2e-3. The tolerance lies
  // between, 6 times below the former.
  double output32 = 5e-5;
  // float32 gradients of the first batch, each relative to its norm, by the same reasoning: honest
  // frameworks are within 1e-5 on the shipped networks. A ReLU whose input is so near to zero that rounding
  // decides its sign changes the gradients before it by a jump, 1e-2 in ResNet-50. If the referee's own
  // values, rounded to float32 with such edges open or closed, are further away than 1/`rounding_factor` of
  // this tolerance, the tolerance is that distance times the factor.
  double gradient32 = 5e-5;
  double rounding_factor = 4;
  // Parameters after the float32 steps, relative to their moves: all parameters together, and each alone.
  double moved32 = 1e-2;
  double moved32_each = 0.25;
};

// Name of the check of float32 gradients; its error is shown as the contender's distance.
inline constexpr const char* kGradients32 = "float32 gradients";

// Proofs 1 and 2 in a worker that has imported its framework; a worker may serve several proofs. A gradient
// that is zero by mathematics (of a bias before BatchNorm) is compared relative to the largest gradient of
// the model. With `train` false proof 2 is skipped. The results are added to `parity`.
void prove_in(Worker& worker, const GateJob& job, const Reference& reference, const ContenderStart& contender,
              bool train, Parity& parity, const Tolerances& tolerances = {},
              const std::string& dtype = "float64");

// One contender's way through the gate, in one process, which is killed in the end.
class Proof {
 public:
  // Starts it and imports the framework.
  explicit Proof(const ContenderStart& contender);

  // Proofs 1 and 2. `job` and `reference` outlive the proof: float32() may come back to their weights.
  void float64(const GateJob& job, const Reference& reference, const Tolerances& tolerances = {});
  // Proofs 3 and 4. Where the referee may still compute what add_reference32() adds to `reference`, `wait` is
  // called when the worker has answered the requests of proof 3; false: the referee failed.
  void float32(const GateJob& job, const Reference& reference, const Tolerances& tolerances = {},
               const std::function<bool()>& wait = {});

  Parity parity = {};

 private:
  void start();

  ContenderStart contender_;
  const GateJob* job64_ = nullptr;  // of proofs 1 and 2
  const Reference* reference64_ = nullptr;
  std::unique_ptr<Worker> worker_;
  std::optional<Imported> imported_;
};

}  // namespace bakeoff
