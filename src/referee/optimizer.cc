#include "referee/optimizer.h"

#include <cassert>
#include <cmath>

namespace bakeoff::referee {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

double denominator(const Optimizer& o, double v) {
  return o.eps_form == EpsForm::kInside ? std::sqrt(v + o.eps) : std::sqrt(v) + o.eps;
}

// Each gives the step in units of lr and updates the state of one scalar.
double sgd(const Optimizer& o, double g, double& velocity) {
  if (o.momentum == 0) return g;
  velocity = o.momentum * velocity + g;
  return o.nesterov ? g + o.momentum * velocity : velocity;
}

double rmsprop(const Optimizer& o, double g, double& buffer, double& v) {
  v = o.rho * v + (1 - o.rho) * g * g;
  const double u = g / denominator(o, v);
  if (o.momentum == 0) return u;
  buffer = o.momentum * buffer + u;
  return buffer;
}

// 1 - beta^t of the step being made.
struct Correction {
  double first, second;
};

double adam(const Optimizer& o, double g, double& m, double& v, const Correction& c) {
  m = o.beta1 * m + (1 - o.beta1) * g;
  v = o.beta2 * v + (1 - o.beta2) * g * g;
  if (o.eps_form == EpsForm::kHat) return std::sqrt(c.second) / c.first * m / (std::sqrt(v) + o.eps);
  return m / c.first / denominator(o, v / c.second);
}

double direction(const Optimizer& o, double g, double& first, double& second, const Correction& c) {
  switch (o.kind) {
    case OptimizerKind::kSgd:
      return sgd(o, g, first);
    case OptimizerKind::kRmsprop:
      return rmsprop(o, g, first, second);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      break;
  }
  return adam(o, g, first, second, c);
}

}  // namespace

OptimizerState initial_state(const Weights& weights) {
  OptimizerState state;
  for (const tensor::Tensor& w : weights) state.first.push_back(tensor::zeros(w.shape));
  state.second = state.first;
  return state;
}

void step(const Optimizer& optimizer, const Weights& gradients, OptimizerState& state, Weights& weights) {
  assert(gradients.size() == weights.size() && state.first.size() == weights.size());
  assert(optimizer.eps_form != EpsForm::kHat || optimizer.kind == OptimizerKind::kAdam ||
         optimizer.kind == OptimizerKind::kAdamW);
  const auto t = static_cast<double>(++state.steps);
  const Correction correction{1 - std::pow(optimizer.beta1, t), 1 - std::pow(optimizer.beta2, t)};
  const bool decoupled =
      optimizer.kind == OptimizerKind::kAdamW || optimizer.decay_form == ir::DecayForm::kDecoupled;
  const double l2 = decoupled ? 0 : optimizer.weight_decay;
  const double beside = decoupled ? optimizer.weight_decay : 0;
  for (size_t p = 0; p < weights.size(); ++p) {
    if (gradients[p].data.empty()) continue;
    for (size_t i = 0; i < weights[p].data.size(); ++i) {
      double& w = weights[p].data[i];
      const double g = gradients[p].data[i] + l2 * w;
      const double u = direction(optimizer, g, state.first[p].data[i], state.second[p].data[i], correction);
      w -= optimizer.lr * (u + beside * w);
    }
  }
}

}  // namespace bakeoff::referee
