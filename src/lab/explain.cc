#include "lab/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/op_table.h"
#include "lab/inputs.h"
#include "lab/variants.h"
#include "referee/optimizer.h"
#include "referee/train.h"

namespace bakeoff::lab {
namespace {

constexpr double kMatch = 1e-7;  // relative: far above float64 rounding, far below any difference of meaning

double far(double a, double b) { return std::abs(a - b) / std::max(std::abs(b), 1e-300); }

// norm(a - b) / scale; infinity where the shapes differ or an element is no number.
double distance(const tensor::Tensor& a, const tensor::Tensor& b, double scale) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.shape != b.shape) return kInfinity;
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
  return std::isfinite(sum) ? std::sqrt(sum) / std::max(scale, 1e-300) : kInfinity;
}

// How far the contender's gradients are from `expected`. What the workload does not use is not looked at.
double gradients_off(const ir::Workload& workload, const referee::Weights& expected, const Answer& answer) {
  double largest = 0, worst = 0;
  for (const tensor::Tensor& g : expected) largest = std::max(largest, tensor::norm(g));
  std::vector<bool> used(workload.parameters.size(), false);
  for (const ir::Node& node : workload.nodes) {
    for (const ir::Slot& slot : node.params) used[static_cast<size_t>(slot.param)] = true;
  }
  for (size_t id = 0; id < answer.gradients.size(); ++id) {
    if (!used[id] || !ir::trainable(workload.parameters[id])) continue;
    // A gradient that is zero by mathematics is rounding, as in the gate.
    const double scale = std::max(tensor::norm(expected[id]), 1e-6 * largest);
    worst = std::max(worst, distance(answer.gradients[id], expected[id], scale));
  }
  return worst;
}

// How far the contender's updated parameters are from `ours`, relative to the step.
double updates_off(const Reference& reference, const referee::Weights& ours, const referee::Weights& theirs,
                   const ir::Workload& workload) {
  double worst = 0;
  for (size_t id = 0; id < ours.size(); ++id) {
    if (!ir::trainable(workload.parameters[id])) continue;
    tensor::Tensor step = ours[id];
    for (size_t i = 0; i < step.data.size(); ++i) step.data[i] -= reference.weights[id].data[i];
    const double scale = std::max(tensor::norm(step), 1e-9 * tensor::norm(ours[id]));
    worst = std::max(worst, distance(theirs[id], ours[id], scale));
  }
  return worst;
}

// The first update is proportional to the learning rate, whatever the optimizer: the rate that fits best.
std::optional<double> other_learning_rate(const GateJob& job, const Reference& reference,
                                          const Answer& answer) {
  double product = 0, square = 0;
  for (size_t id = 0; id < reference.updated.size(); ++id) {
    const auto& from = reference.weights[id].data;
    const auto& to = reference.updated[id].data;
    const auto& theirs = answer.updated[id].data;
    if (!ir::trainable(job.workload.parameters[id]) || theirs.size() != from.size()) continue;
    for (size_t i = 0; i < from.size(); ++i) {
      product += (theirs[i] - from[i]) * (to[i] - from[i]);
      square += (to[i] - from[i]) * (to[i] - from[i]);
    }
  }
  if (!(square > 0) || !std::isfinite(product)) return std::nullopt;
  return job.training.optimizer.lr * product / square;
}

// Of the variants that come close enough the one that comes closest: neighbours (an epsilon of 1e-6 or 1e-12)
// may both.
class Best {
 public:
  void offer(double off, const std::string& words) {
    if (off < least_) least_ = off, words_ = words;
  }
  bool found() const { return least_ < kMatch; }
  std::string text(const char* prefix = "matches: ") const { return found() ? prefix + words_ : ""; }

 private:
  double least_ = kMatch;
  std::string words_;
};

// Training is the recipe's, what the model predicts is not: a loss may undo what the model ends in.
std::string explain_prediction(const GateJob& job, const Reference& reference, const Answer& answer) {
  const auto off = [&](const tensor::Tensor& expected) {
    return distance(answer.prediction, expected, tensor::norm(expected));
  };
  if (off(reference.at.prediction) < kMatch) return "";
  Best best;
  for (const Variant& v : model_variants(job.workload, job.training)) {
    const auto e = referee::evaluate(v.workload, reference.weights, reference.batch, {.gradients = false});
    if (e) best.offer(off(e->prediction), v.words);
  }
  return best.text("loss and gradients are the recipe's, the prediction matches: ");
}

}  // namespace

std::string explain_model(const GateJob& job, const Reference& reference, const Answer& answer) {
  const bool loss_differs = !(far(answer.loss, reference.at.loss) < kMatch);
  if (!loss_differs && gradients_off(job.workload, reference.at.gradients, answer) < kMatch) {
    return explain_prediction(job, reference, answer);
  }
  Best all, loss_alone;
  for (const Variant& v : model_variants(job.workload, job.training)) {
    // The loss is cheap to know and rules most variants out.
    const auto loss = referee::evaluate(v.workload, reference.weights, reference.batch, {.gradients = false});
    if (!loss || !(far(loss->loss, answer.loss) < kMatch)) continue;
    const auto e = referee::evaluate(v.workload, reference.weights, reference.batch);
    const double loss_off = far(loss->loss, answer.loss);
    if (e) all.offer(std::max(loss_off, gradients_off(v.workload, e->gradients, answer)), v.words);
    if (loss_differs) loss_alone.offer(loss_off, v.words);
  }
  if (all.found()) return all.text();
  if (loss_alone.found()) return loss_alone.text("the loss alone matches: ");
  // The loss is the recipe's, some gradient is not.
  const auto batch = static_cast<double>(job.training.batch);
  for (const double factor : {batch, 1.0 / batch, 2.0, 0.5}) {
    referee::Weights scaled = reference.at.gradients;
    for (tensor::Tensor& gradient : scaled) {
      for (double& g : gradient.data) g *= factor;
    }
    if (gradients_off(job.workload, scaled, answer) < kMatch) {
      return fmt::format("matches: all gradients multiplied by {:g}", factor);
    }
  }
  std::vector<std::string> missing;
  for (size_t id = 0; id < answer.gradients.size(); ++id) {
    if (!ir::trainable(job.workload.parameters[id])) continue;
    const auto& g = answer.gradients[id];
    if (g.data.empty() || tensor::norm(g) == 0) missing.push_back(job.workload.parameters[id].name);
  }
  return missing.empty() ? "" : fmt::format("no gradient reaches {}", fmt::join(missing, ", "));
}

std::string explain_update(const GateJob& job, const Reference& reference, const Answer& answer) {
  if (updates_off(reference, reference.updated, answer.updated, job.workload) < kMatch) return "";
  Best best;
  for (const Variant& v : optimizer_variants(job.workload, job.training)) {
    referee::Weights updated = reference.weights;
    auto state = referee::initial_state(updated);
    referee::step(v.training.optimizer, reference.at.gradients, state, updated);
    best.offer(updates_off(reference, updated, answer.updated, job.workload), v.words);
  }
  if (const auto lr = other_learning_rate(job, reference, answer)) {
    referee::Weights updated = reference.weights;
    auto state = referee::initial_state(updated);
    ir::Optimizer changed = job.training.optimizer;
    changed.lr = *lr;
    referee::step(changed, reference.at.gradients, state, updated);
    best.offer(updates_off(reference, updated, answer.updated, job.workload),
               fmt::format("learning rate {:g}", *lr));
  }
  return best.text();
}

std::string explain_buffers(const GateJob& job, const Reference& reference, const Answer& answer,
                            bool unbiased) {
  const auto off = [&](const referee::Weights& expected) {
    double worst = 0;
    for (size_t id = 0; id < expected.size(); ++id) {
      if (ir::trainable(job.workload.parameters[id])) continue;
      worst = std::max(worst, distance(answer.buffers[id], expected[id], tensor::norm(expected[id])));
    }
    return worst;
  };
  const auto& running = reference.at.running;
  if (off(unbiased ? running.unbiased : running.biased) < kMatch) return "";
  if (off(unbiased ? running.biased : running.unbiased) < kMatch) {
    return fmt::format("matches: running variance from the {} batch variance",
                       unbiased ? "biased" : "unbiased");
  }
  Best best;
  for (const double momentum :
       {0.0, 0.001, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95, 0.97, 0.99, 0.999, 1.0}) {
    ir::Workload changed = job.workload;
    for (ir::Node& node : changed.nodes) {
      if (node.op == ir::Op::kBatchNorm) ir::set_attribute(node, "momentum", momentum);
    }
    const auto e = referee::evaluate(changed, reference.weights, reference.batch, {.gradients = false});
    if (!e) continue;
    best.offer(std::min(off(e->running.biased), off(e->running.unbiased)),
               fmt::format("BatchNorm momentum {:g} (weight of the new batch; Keras writes {:g})", momentum,
                           1 - momentum));
  }
  return best.text();
}

std::string explain_losses(const GateJob& job, const Reference& reference, const Answer& answer) {
  auto batches = read_batches(job.workload, job.training, job.data, job.rows, kSteps64);
  if (!batches || answer.losses64.size() < 2) return "";
  const auto off = [&](const std::vector<double>& losses) {
    double worst = 0;
    for (size_t k = 0; k < answer.losses64.size() && k < losses.size(); ++k) {
      if (!std::isfinite(answer.losses64[k])) return std::numeric_limits<double>::infinity();
      worst = std::max(worst, far(losses[k], answer.losses64[k]));
    }
    return worst;
  };
  if (off(reference.losses64) < kMatch) return "";
  Best best;
  for (const Variant& v : optimizer_variants(job.workload, job.training)) {
    // The loss after one update is cheap to know and tells most variants apart.
    referee::Weights weights = reference.weights;
    auto state = referee::initial_state(weights);
    referee::step(v.training.optimizer, reference.at.gradients, state, weights);
    const auto second = referee::evaluate(job.workload, weights, (*batches)[1], {.gradients = false});
    if (!second || !(far(second->loss, answer.losses64[1]) < kMatch)) continue;
    const auto run = referee::train(v.workload, v.training.optimizer, reference.weights, *batches);
    if (run) best.offer(off(run->losses), v.words);
  }
  return best.text();
}

}  // namespace bakeoff::lab
