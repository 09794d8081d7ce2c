#include "referee/optimizer.h"

#include <algorithm>
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

double norm_of_all(const Weights& gradients) {
  double sum = 0;
  for (const tensor::Tensor& g : gradients) {
    for (const double x : g.data) sum += x * x;
  }
  return std::sqrt(sum);
}

void average(const Optimizer& o, OptimizerState& state, const Weights& weights) {
  if (o.ema == 0) return;
  if (state.steps == 1) {
    state.average = weights;
    return;
  }
  for (size_t p = 0; p < weights.size(); ++p) {
    for (size_t i = 0; i < weights[p].data.size(); ++i) {
      double& a = state.average[p].data[i];
      a = o.ema * a + (1 - o.ema) * weights[p].data[i];
    }
  }
}

}  // namespace

Weights clipped(const Optimizer& optimizer, Weights gradients) {
  double factor = 1;
  if (optimizer.clip_norm != 0) {
    const double norm = norm_of_all(gradients) + optimizer.clip_eps;
    if (norm > optimizer.clip_norm) factor = optimizer.clip_norm / norm;
  }
  for (tensor::Tensor& g : gradients) {
    for (double& x : g.data) {
      x *= factor;
      if (optimizer.clip_value != 0) x = std::clamp(x, -optimizer.clip_value, optimizer.clip_value);
    }
  }
  return gradients;
}

bool clipping_acts(const Optimizer& optimizer, const Weights& gradients) {
  if (optimizer.clip_norm != 0 && norm_of_all(gradients) > optimizer.clip_norm) return true;
  const auto beyond = [&](double x) { return std::abs(x) > optimizer.clip_value; };
  return optimizer.clip_value != 0 &&
         std::any_of(gradients.begin(), gradients.end(), [&](const tensor::Tensor& g) {
           return std::any_of(g.data.begin(), g.data.end(), beyond);
         });
}

OptimizerState initial_state(const Weights& weights) {
  OptimizerState state;
  for (const tensor::Tensor& w : weights) state.first.push_back(tensor::zeros(w.shape));
  state.second = state.first;
  return state;
}

void step(const Optimizer& optimizer, const Weights& given, OptimizerState& state, Weights& weights) {
  assert(given.size() == weights.size() && state.first.size() == weights.size());
  assert(optimizer.eps_form != EpsForm::kHat || optimizer.kind == OptimizerKind::kAdam ||
         optimizer.kind == OptimizerKind::kAdamW);
  const double rate = optimizer.rate(state.steps);
  const auto t = static_cast<double>(++state.steps);
  const Correction correction{1 - std::pow(optimizer.beta1, t), 1 - std::pow(optimizer.beta2, t)};
  const bool decoupled =
      optimizer.kind == OptimizerKind::kAdamW || optimizer.decay_form == ir::DecayForm::kDecoupled;
  const Weights changed = optimizer.clips() ? clipped(optimizer, given) : Weights();
  const Weights& gradients = optimizer.clips() ? changed : given;
  for (size_t p = 0; p < weights.size(); ++p) {
    if (gradients[p].data.empty()) continue;
    const double decay = optimizer.decays(static_cast<int>(p)) ? optimizer.weight_decay : 0;
    const double l2 = decoupled ? 0 : decay;
    const double beside = decoupled ? decay : 0;
    for (size_t i = 0; i < weights[p].data.size(); ++i) {
      double& w = weights[p].data[i];
      const double g = gradients[p].data[i] + l2 * w;
      const double u = direction(optimizer, g, state.first[p].data[i], state.second[p].data[i], correction);
      w -= rate * (u + beside * w);
    }
  }
  average(optimizer, state, weights);
}

}  // namespace bakeoff::referee
