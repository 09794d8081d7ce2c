#pragma once

// A way of training that is not the recipe's: what a port computes instead, as a whole, from the inputs to
// the parameters after some steps. Beside the changed copies of a recipe (causes/variants.h) these are the
// deviations that no recipe can state: another layout of weights, scaled inputs, gradients clipped or not
// zeroed, optimizers of other names.

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

// Weights or gradients, changed in place.
using WeightsChange = std::function<void(referee::Weights&)>;

// What a model computes. Without `words` it is the recipe's.
struct ModelWay {
  std::string words = {};
  ir::Workload workload = {};
  bool inference = false;  // running statistics instead of the batch's, and none updated
  referee::Deviations deviations = {};
  std::function<void(referee::Inputs&)> inputs = {};
  // From the canonical weights to what its formulas use, and gradients with regard to those back again.
  WeightsChange to_use = {}, back = {};
  // Gradients as the optimizer gets them, of those of the loss; the weights of the step beside them.
  std::function<void(referee::Weights& gradients, const referee::Weights& weights)> gradients = {};
  // What it adds to the loss.
  std::function<double(const referee::Weights& weights)> penalty = {};
  bool accumulates = false;  // gradients are added to those of all steps before
  // It happens after the prediction: that may be the recipe's or the changed one's.
  bool after_prediction = false;
};

// What an optimizer computes that ir::Optimizer cannot say.
enum class Twist {
  kNone,
  kNoBiasCorrection,  // Adam: m / (sqrt(v) + eps)
  kNadam,             // Dozat 2016 with torch's and Keras's schedule of momentum
  kNadamPlain,        // the same with a constant beta1 (optax)
  kAmsgrad,           // the maximum of v
  kAmsgradHat,        // the maximum of v corrected for bias (optax)
  kDampening,         // SGD: v = momentum v + (1 - amount) g, but v = g at first (torch)
  kDampened,          // the same, also at first
  kCentered,          // RMSprop: v - (mean of g)^2
  kClipValue,         // of each element, before the update
  kClipNorm,          // of all gradients as one vector
  kClipNorms,         // of each tensor's gradient
};

struct OptimizerWay {
  std::string words = {};
  ir::Optimizer optimizer = {};
  Twist twist = Twist::kNone;
  double amount = 0;  // of dampening; a limit
};

std::vector<ModelWay> model_ways(const GateJob& job, const Reference& reference, const Answer& answer);
std::vector<OptimizerWay> optimizer_ways(const GateJob& job, const Reference& reference,
                                         const Answer& answer);

// One evaluation, with gradients as the optimizer gets them; by ParamId of the recipe.
Result<referee::Evaluation> evaluate_way(const ModelWay& way, const referee::Weights& weights,
                                         const referee::Inputs& batch, bool gradients);

// One optimizer's state and its updates.
class WayOptimizer {
 public:
  WayOptimizer(const OptimizerWay& way, const referee::Weights& weights);
  void step(referee::Weights gradients, referee::Weights& weights);

 private:
  const OptimizerWay& way_;
  referee::OptimizerState state_;
  referee::Weights third_;  // maxima, or means
  double momentum_product_ = 1;
  int64_t steps_ = 0;
};

}  // namespace bakeoff
