#pragma once

// A way of training that is not the recipe's: everything that a port computes instead, from the inputs to
// the parameters after some steps. Besides the changed copies of a recipe (causes/variants.h) these are
// deviations that no recipe can express: another layout of weights, scaled inputs, gradients that are
// clipped or not reset to zero, optimizers with other names.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "causes/answer.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "plan/lane.h"
#include "referee/evaluate.h"
#include "referee/optimizer.h"
#include "reference/reference.h"

namespace bakeoff {

// A change of weights or gradients in place.
using WeightsChange = std::function<void(referee::Weights&)>;

// What a model computes. With empty `words` it is the recipe's model.
struct ModelWay {
  std::string words = {};
  ir::Workload workload = {};
  bool inference = false;  // uses running statistics instead of the batch's, and updates none
  referee::Deviations deviations = {};
  std::function<void(referee::Inputs&)> inputs = {};
  // Converts canonical weights to the ones that its formulas use, and their gradients back.
  WeightsChange to_use = {}, back = {};
  // Turns the gradients of the loss into the optimizer's gradients; `weights`: before the step.
  std::function<void(referee::Weights& gradients, const referee::Weights& weights)> gradients = {};
  // The term that it adds to the loss.
  std::function<double(const referee::Weights& weights)> penalty = {};
  bool accumulates = false;  // gradients are added to those of all earlier steps
  // It acts after the prediction, so the prediction may equal the recipe's.
  bool after_prediction = false;
};

// Changes of an optimizer that ir::Optimizer cannot express.
enum class Twist {
  kNone,
  kNoBiasCorrection,  // Adam: m / (sqrt(v) + eps)
  kNadam,             // Dozat 2016 with torch's and Keras's schedule of momentum
  kNadamPlain,        // the same with a constant beta1 (optax)
  kAmsgrad,           // maximum of v
  kAmsgradHat,        // maximum of the bias-corrected v (optax)
  kDampening,         // SGD: v = momentum v + (1 - amount) g, but v = g in the first step (torch)
  kDampened,          // the same formula in the first step too
  kCentered,          // RMSprop: v - (mean of g)^2
  kClipValue,         // clips each element before the update
  kClipNorm,          // clips the norm of all gradients as one vector
  kClipNorms,         // clips the norm of each tensor's gradient
};

struct OptimizerWay {
  std::string words = {};
  ir::Optimizer optimizer = {};
  Twist twist = Twist::kNone;
  double amount = 0;  // factor of the dampening, or limit of the clipping
};

std::vector<ModelWay> model_ways(const GateJob& job, const Reference& reference, const Answer& answer);
std::vector<OptimizerWay> optimizer_ways(const GateJob& job, const Reference& reference,
                                         const Answer& answer);

// One evaluation, with the gradients that the optimizer gets; by ParamId of the recipe.
Result<referee::Evaluation> evaluate_way(const ModelWay& way, const referee::Weights& weights,
                                         const referee::Inputs& batch, bool gradients);

// The state of one such optimizer, and its updates.
class WayOptimizer {
 public:
  WayOptimizer(const OptimizerWay& way, const referee::Weights& weights);
  void step(referee::Weights gradients, referee::Weights& weights);

 private:
  const OptimizerWay& way_;
  referee::OptimizerState state_;
  referee::Weights third_;  // maxima or means, as the twist needs
  double momentum_product_ = 1;
  int64_t steps_ = 0;
};

}  // namespace bakeoff
