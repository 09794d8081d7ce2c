#include "causes/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/texts.h"
#include "causes/ways.h"
#include "data/inputs.h"
#include "ir/op_table.h"
#include "plan/lane.h"
#include "reference/rounding.h"

namespace bakeoff {
namespace {

constexpr double kMatch = 1e-7;  // relative: far above float64 rounding, far below any difference of meaning
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double relative_difference(double a, double b) {
  if (!std::isfinite(a)) return kInfinity;
  return std::abs(a - b) / std::max(std::abs(b), 1e-300);
}

// norm(a - b) / scale; infinity where the shapes differ or an element is no number.
double distance(const tensor::Tensor& a, const tensor::Tensor& b, double scale) {
  if (a.shape != b.shape || a.data.size() != b.data.size()) return kInfinity;
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
  return std::isfinite(sum) ? std::sqrt(sum) / std::max(scale, 1e-300) : kInfinity;
}

double off(const tensor::Tensor& a, const tensor::Tensor& b) { return distance(a, b, tensor::norm(b)); }

// How far the contender's gradients are from `expected`. One that it does not show counts as zero.
double gradients_off(const ir::Workload& workload, const referee::Weights& expected, const Answer& answer) {
  double largest = 0, worst = 0;
  for (const tensor::Tensor& g : expected) largest = std::max(largest, tensor::norm(g));
  for (size_t id = 0; id < answer.gradients.size(); ++id) {
    if (!ir::trainable(workload.parameters[id])) continue;
    const bool zero = answer.gradients[id].data.empty() && tensor::norm(expected[id]) == 0;
    if (!zero)
      worst = std::max(worst,
                       distance(answer.gradients[id], expected[id], gradient_scale(expected[id], largest)));
  }
  return worst;
}

// How far parameters are from `ours`, relative to how far those have moved; `noise` as in Reference.
double moves_off(const ir::Workload& workload, const referee::Weights& from, const referee::Weights& ours,
                 const referee::Weights& theirs, const std::vector<double>& noise) {
  if (theirs.size() != ours.size()) return kInfinity;
  double worst = 0, largest = 0;
  for (size_t id = 0; id < ours.size(); ++id) largest = std::max(largest, sum_apart(ours[id], from[id]));
  for (size_t id = 0; id < ours.size(); ++id) {
    if (!ir::trainable(workload.parameters[id])) continue;
    const double scale = std::max({sum_apart(ours[id], from[id]), 1e-6 * largest, 1e-300});
    const double rounding = noise.empty() ? 0 : 10 * noise[id];
    worst = std::max(worst, std::max(0.0, sum_apart(theirs[id], ours[id]) - rounding) / scale);
  }
  return worst;
}

struct Found {
  double off = kMatch;
  std::string words = {};
  bool any = false;
  void offer(double distance, const std::string& text) {
    if (distance < off) off = distance, words = text, any = true;
  }
};

// Which momentum of BatchNorm, and which variance, gives the running statistics; they depend on nothing but
// the model. `any` with empty words: the recipe's.
Found explain_buffers(const GateJob& job, const ModelWay& model, const Reference& reference,
                      const Answer& answer, bool unbiased) {
  const auto apart = [&](const referee::Weights& expected) {
    double worst = 0;
    for (size_t id = 0; id < expected.size(); ++id) {
      if (ir::trainable(job.workload.parameters[id])) continue;
      worst = std::max(worst, off(answer.buffers[id], expected[id]));
    }
    return worst;
  };
  Found best;
  if (model.inference) {
    best.offer(apart(reference.weights), "");
    return best;
  }
  const auto run = [&](const ModelWay& way) {
    return evaluate_way(way, reference.weights, reference.batch, false);
  };
  const auto plain = run(model);
  if (!plain) return best;
  const auto& expected = plain->running;
  best.offer(apart(unbiased ? expected.unbiased : expected.biased), "");
  if (best.any) return best;
  best.offer(apart(unbiased ? expected.biased : expected.unbiased),
             fmt::format("running variance from the {} batch variance", unbiased ? "biased" : "unbiased"));
  if (best.any) return best;
  best.offer(apart(reference.weights), "running statistics that are never updated");
  if (best.any) return best;
  for (const double momentum :
       {0.0, 0.001, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95, 0.97, 0.99, 0.999, 1.0}) {
    ModelWay changed = model;
    for (ir::Node& node : changed.workload.nodes) {
      if (node.op == ir::Op::kBatchNorm) ir::set_attribute(node, "momentum", momentum);
    }
    if (changed.workload == model.workload) continue;
    const auto e = run(changed);
    if (!e) continue;
    const std::string words = fmt::format(
        "BatchNorm momentum {:g} (weight of the new batch; Keras writes {:g})", momentum, 1 - momentum);
    best.offer(apart(unbiased ? e->running.unbiased : e->running.biased), words);
    best.offer(apart(unbiased ? e->running.biased : e->running.unbiased),
               fmt::format("{}, from the {} batch variance", words, unbiased ? "biased" : "unbiased"));
  }
  return best;
}

// A model that fits one step, and its first evaluation.
struct FittingModel {
  ModelWay way;
  double off = 0;
  std::string buffers = {};  // what became of the running statistics
};

class Search {
 public:
  Search(const GateJob& job, const Reference& reference, const Answer& answer, bool unbiased)
      : job_(job), reference_(reference), answer_(answer), unbiased_(unbiased) {}

  std::string run() {
    find_models();
    find_optimizers();
    std::vector<referee::Inputs> batches;
    if (!answer_.losses64.empty()) {
      auto read = read_batches(job_.workload, job_.training, job_.data, job_.rows,
                               static_cast<int64_t>(answer_.losses64.size()));
      if (!read) return "";
      batches = std::move(*read);
    }
    // Of the ways that fit those with the fewest deviations: a limit that clips nothing fits as well as none.
    std::array<Found, 4> best;
    for (const FittingModel& model : models_) {
      for (const auto& [optimizer, update_off] : optimizers_) {
        std::vector<std::string> words;
        for (const std::string& one : {model.way.words, model.buffers, optimizer.words}) {
          if (!one.empty()) words.push_back(one);
        }
        const double steps = batches.empty() ? 0 : steps_off(model.way, optimizer, batches);
        best[words.size()].offer(std::max({model.off, update_off, steps}), join(words, "; and "));
      }
    }
    if (best[0].any) return "";
    for (const Found& found : best) {
      if (found.any) return "matches: " + found.words;
    }
    return "";
  }

 private:
  bool prediction_fits(const ModelWay& way, const tensor::Tensor& prediction, double& worst) const {
    double apart = off(answer_.prediction, prediction);
    if (way.after_prediction) apart = std::min(apart, off(answer_.prediction, reference_.at.prediction));
    worst = std::max(worst, apart);
    return apart < kMatch;
  }

  void consider(const ModelWay& way) {
    double worst = 0;
    // Prediction and loss are cheap to know and rule most ways out.
    const auto forward = evaluate_way(way, reference_.weights, reference_.batch, false);
    if (!forward || !prediction_fits(way, forward->prediction, worst)) return;
    worst = std::max(worst, relative_difference(answer_.loss, forward->loss));
    if (!(worst < kMatch)) return;
    const auto e = evaluate_way(way, reference_.weights, reference_.batch, true);
    if (!e) return;
    worst = std::max(worst, gradients_off(job_.workload, e->gradients, answer_));
    if (!(worst < kMatch)) return;
    const Found buffers = explain_buffers(job_, way, reference_, answer_, unbiased_);
    if (buffers.any) models_.push_back({way, worst, buffers.words});
  }

  void find_models() {
    const ModelWay recipe{.workload = job_.workload};
    consider(recipe);
    for (const ModelWay& way : model_ways(job_, reference_, answer_)) consider(way);
    if (models_.empty()) consider_prediction_alone();
  }

  // Training is the recipe's, what the model predicts is not: a loss may undo what the model ends in.
  void consider_prediction_alone() {
    if (!(relative_difference(answer_.loss, reference_.at.loss) < kMatch) ||
        !(gradients_off(job_.workload, reference_.at.gradients, answer_) < kMatch))
      return;
    for (ModelWay way : model_ways(job_, reference_, answer_)) {
      const auto e = evaluate_way(way, reference_.weights, reference_.batch, false);
      const double apart = e ? off(answer_.prediction, e->prediction) : kInfinity;
      if (!(apart < kMatch)) continue;
      const std::string words = "in the prediction alone, not in loss and gradients: " + way.words;
      way = ModelWay{.words = words, .workload = job_.workload};
      const Found buffers = explain_buffers(job_, way, reference_, answer_, unbiased_);
      if (buffers.any) models_.push_back({way, apart, buffers.words});
    }
  }

  void find_optimizers() {
    const auto consider = [&](const OptimizerWay& way) {
      referee::Weights updated = reference_.weights;
      WayOptimizer(way, updated).step(reference_.given, updated);
      const double apart = moves_off(job_.workload, reference_.weights, updated, answer_.updated, {});
      if (apart < kMatch) optimizers_.emplace_back(way, apart);
    };
    consider({.optimizer = job_.training.optimizer});
    for (const OptimizerWay& way : optimizer_ways(job_, reference_, answer_)) consider(way);
  }

  double steps_off(const ModelWay& model, const OptimizerWay& optimizer,
                   const std::vector<referee::Inputs>& batches) const {
    referee::Weights weights = reference_.weights, sums;
    WayOptimizer update(optimizer, weights);
    double worst = 0;
    for (size_t k = 0; k < batches.size(); ++k) {
      auto e = evaluate_way(model, weights, batches[k], true);
      if (!e) return kInfinity;
      worst = std::max(worst, relative_difference(answer_.losses64[k], e->loss));
      if (!(worst < kMatch)) return kInfinity;
      if (model.accumulates) {
        for (size_t p = 0; k > 0 && p < sums.size(); ++p) {
          for (size_t i = 0; i < sums[p].data.size(); ++i) e->gradients[p].data[i] += sums[p].data[i];
        }
        sums = e->gradients;
      }
      update.step(std::move(e->gradients), weights);
      const auto& running = e->running.biased;
      for (size_t p = 0; p < running.size(); ++p) {
        if (!running[p].data.empty() && !model.inference) weights[p] = running[p];
      }
    }
    return std::max(
        worst, moves_off(job_.workload, reference_.weights, weights, answer_.after64, reference_.noise64));
  }

  const GateJob& job_;
  const Reference& reference_;
  const Answer& answer_;
  bool unbiased_;
  std::vector<FittingModel> models_;
  std::vector<std::pair<OptimizerWay, double>> optimizers_;
};

}  // namespace

std::string explain(const GateJob& job, const Reference& reference, const Answer& answer, bool unbiased) {
  return Search(job, reference, answer, unbiased).run();
}

}  // namespace bakeoff
