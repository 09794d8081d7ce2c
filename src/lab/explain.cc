#include "lab/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "ir/op_table.h"
#include "ir/verify.h"
#include "lab/inputs.h"
#include "referee/optimizer.h"
#include "referee/train.h"

namespace bakeoff::lab {
namespace {

using ir::Op;

constexpr double kMatch = 1e-7;  // relative: far above float64 rounding, far below any difference of meaning

double far(double a, double b) { return std::abs(a - b) / std::max(std::abs(b), 1e-300); }

// Collects changed copies of a workload that are still valid.
class Changes {
 public:
  Changes(const ir::Workload& workload, const ir::Training& training)
      : workload_(workload), training_(training) {}

  // Applies `change` to every node of `op` at once, and to each alone where there are several.
  template <typename Change>
  void nodes(Op op, const std::string& words, Change change) {
    std::vector<size_t> found;
    for (size_t n = 0; n < workload_.nodes.size(); ++n) {
      if (workload_.nodes[n].op == op) found.push_back(n);
    }
    add(found, words, change);
    if (found.size() < 2) return;
    for (const size_t n : found) add({n}, words + " at '" + label(n) + "' alone", change);
  }

  void workload(ir::Workload changed, const std::string& words) {
    if (changed == workload_ || !ir::infer(changed)) return;
    variants_.push_back({words, std::move(changed), training_});
  }

  std::vector<Variant> take() { return std::move(variants_); }

 private:
  std::string label(size_t n) const {
    const ir::Node& node = workload_.nodes[n];
    if (node.params.empty()) return node.output;
    const std::string& name = workload_.parameters[static_cast<size_t>(node.params[0].param)].name;
    return name.substr(0, name.rfind('.'));
  }

  template <typename Change>
  void add(const std::vector<size_t>& at, const std::string& words, Change change) {
    ir::Workload changed = workload_;
    for (const size_t n : at) change(changed.nodes[n]);
    workload(std::move(changed), words);
  }

  const ir::Workload& workload_;
  const ir::Training& training_;
  std::vector<Variant> variants_;
};

// The total padding kept, the odd pixel moved to bottom and right: what SAME does at stride 2.
void same_padding(ir::Node& node) {
  std::vector<int64_t> pad = node.integers("pad");
  const auto& stride = node.integers("stride");
  for (size_t axis = 0; axis < 2; ++axis) {
    // With stride s, SAME pads in total max(k - s, 0) where s divides the size; an explicit k/2 pads more.
    if (stride[axis] < 2 || pad[2 * axis] + pad[2 * axis + 1] < 1) continue;
    const int64_t total = pad[2 * axis] + pad[2 * axis + 1] - 1;
    pad[2 * axis] = total / 2;
    pad[2 * axis + 1] = total - total / 2;
  }
  ir::set_attribute(node, "pad", pad);
}

ir::Workload with_softmax_before_loss(const ir::Workload& workload) {
  ir::Workload changed = workload;
  ir::Node& loss = changed.nodes.back();
  if (loss.op != Op::kSoftmaxCrossEntropy) return changed;
  ir::Node softmax = ir::node_with_defaults(Op::kSoftmax);
  softmax.output = "softmax_before_loss";
  softmax.inputs = {loss.inputs[0]};
  const auto types = ir::infer(workload);
  const size_t rank = (*types)[static_cast<size_t>(loss.inputs[0])].shape.size();
  ir::set_attribute(softmax, "axis", static_cast<int64_t>(rank) - 1);
  loss.inputs[0] = changed.loss();
  changed.nodes.insert(changed.nodes.end() - 1, std::move(softmax));
  return changed;
}

// Without its biases a layer that forgets to add them computes this.
ir::Workload without_op(const ir::Workload& workload, size_t n) {
  ir::Workload changed = workload;
  const ir::ValueId gone = changed.output_of(static_cast<int>(n));
  const ir::ValueId source = changed.nodes[n].inputs[0];
  changed.nodes.erase(changed.nodes.begin() + static_cast<long>(n));
  for (ir::Node& node : changed.nodes) {
    for (ir::ValueId& id : node.inputs) {
      if (id == gone)
        id = source;
      else if (id > gone)
        --id;
    }
  }
  return changed;
}

void add_missing_activations(const ir::Workload& workload, Changes& changes) {
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    const Op op = workload.nodes[n].op;
    if (op != Op::kRelu && op != Op::kGelu && op != Op::kSigmoid && op != Op::kTanh) continue;
    changes.workload(without_op(workload, n),
                     fmt::format("no {} at '{}'", ir::info(op).name, workload.nodes[n].output));
  }
}

// Every activation of a kind replaced by another kind.
void add_other_activations(Changes& changes) {
  const std::pair<Op, std::string> kinds[] = {
      {Op::kRelu, ""}, {Op::kGelu, "erf"}, {Op::kGelu, "tanh"}, {Op::kSigmoid, ""}, {Op::kTanh, ""}};
  for (const Op from : {Op::kRelu, Op::kGelu, Op::kSigmoid, Op::kTanh}) {
    for (const auto& [to, form] : kinds) {
      if (to == from) continue;
      const std::string name = std::string(ir::info(to).name) + (form.empty() ? "" : " (" + form + ")");
      changes.nodes(from, fmt::format("{} instead of {}", name, ir::info(from).name), [&](ir::Node& node) {
        ir::Node other = ir::node_with_defaults(to);
        other.output = node.output, other.inputs = node.inputs;
        if (!form.empty()) ir::set_attribute(other, "form", form);
        node = std::move(other);
      });
    }
  }
}

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

}  // namespace

std::vector<Variant> model_variants(const ir::Workload& workload, const ir::Training& training) {
  Changes changes(workload, training);
  changes.workload(with_softmax_before_loss(workload), "softmax before a loss that takes logits");
  for (const Op op : {Op::kConv2d, Op::kMaxPool2d, Op::kAvgPool2d}) {
    changes.nodes(op, ir::info(op).name + " padded as SAME (the extra pixel at bottom and right)",
                  same_padding);
  }
  for (const double eps : {1e-3, 1e-5, 1e-6, 1e-12}) {
    const auto set = [eps](ir::Node& node) { ir::set_attribute(node, "eps", eps); };
    changes.nodes(Op::kBatchNorm, fmt::format("BatchNorm epsilon {}", eps), set);
    changes.nodes(Op::kLayerNorm, fmt::format("LayerNorm epsilon {}", eps), set);
  }
  for (const std::string form : {"erf", "tanh"}) {
    changes.nodes(Op::kGelu, "GELU in its " + form + " form",
                  [form](ir::Node& node) { ir::set_attribute(node, "form", form); });
  }
  for (const bool count : {false, true}) {
    changes.nodes(Op::kAvgPool2d,
                  count ? "average pooling that counts the padding" : "average pooling without padding",
                  [count](ir::Node& node) { ir::set_attribute(node, "count_include_pad", count); });
  }
  for (const std::string reduction : {"mean", "sum"}) {
    ir::Workload changed = workload;
    ir::set_attribute(changed.nodes.back(), "reduction", reduction);
    changes.workload(std::move(changed), "the loss reduced by " + reduction);
  }
  const auto drop_bias = [](ir::Node& node) {
    std::erase_if(node.params, [](const ir::Slot& s) { return s.name == "bias"; });
  };
  changes.nodes(Op::kConv2d, "convolution without its bias", drop_bias);
  changes.nodes(Op::kLinear, "linear layer without its bias", drop_bias);
  add_missing_activations(workload, changes);
  add_other_activations(changes);
  return changes.take();
}

std::vector<Variant> optimizer_variants(const ir::Workload& workload, const ir::Training& training) {
  std::vector<Variant> all;
  const ir::Optimizer& base = training.optimizer;
  const auto add = [&](ir::Optimizer changed, std::string words) {
    const auto known = [&](const Variant& v) { return v.training.optimizer == changed; };
    if (changed == base || std::any_of(all.begin(), all.end(), known)) return;
    Variant v{std::move(words), workload, training};
    v.training.optimizer = std::move(changed);
    all.push_back(std::move(v));
  };
  const bool adam = base.kind == ir::OptimizerKind::kAdam || base.kind == ir::OptimizerKind::kAdamW;
  const bool has_eps = adam || base.kind == ir::OptimizerKind::kRmsprop;
  const auto form_words = [](ir::EpsForm form) {
    return form == ir::EpsForm::kInside    ? "epsilon inside the root: sqrt(v + eps)"
           : form == ir::EpsForm::kOutside ? "epsilon outside the root: sqrt(v) + eps"
                                           : "epsilon that is not bias-corrected (the 'hat' form)";
  };
  for (const auto form : {ir::EpsForm::kOutside, ir::EpsForm::kInside, ir::EpsForm::kHat}) {
    if (!has_eps || (form == ir::EpsForm::kHat && !adam)) continue;
    for (const double eps : {base.eps, 1e-7, 1e-8, 1e-6, 1e-5, 1e-3}) {
      for (const double rho : {base.rho, 0.9, 0.99}) {
        ir::Optimizer o = base;
        o.eps_form = form, o.eps = eps;
        if (!adam)
          o.rho = rho;
        else if (rho != base.rho)
          continue;
        std::vector<std::string> words;
        if (form != base.eps_form) words.push_back(form_words(form));
        if (eps != base.eps) words.push_back(fmt::format("epsilon {}", eps));
        if (o.rho != base.rho) words.push_back(fmt::format("rho {}", rho));
        add(o, fmt::format("{}", fmt::join(words, ", ")));
      }
    }
  }
  for (const double factor : {0.1, 10.0, 0.5, 2.0}) {
    ir::Optimizer o = base;
    o.lr *= factor;
    add(o, fmt::format("learning rate {:g}", o.lr));
  }
  for (const double momentum : {0.0, 0.9, 0.99}) {
    for (const bool nesterov : {false, true}) {
      ir::Optimizer o = base;
      if (adam || (nesterov && (momentum == 0 || base.kind != ir::OptimizerKind::kSgd))) continue;
      o.momentum = momentum, o.nesterov = nesterov;
      add(o, fmt::format("{} {}", nesterov ? "Nesterov momentum" : "momentum", momentum));
    }
  }
  for (const double beta1 : {base.beta1, 0.9, 0.5, 0.0}) {
    for (const double beta2 : {base.beta2, 0.999, 0.99, 0.98, 0.95, 0.9}) {
      ir::Optimizer o = base;
      if (!adam) continue;
      o.beta1 = beta1, o.beta2 = beta2;
      add(o, fmt::format("betas {}, {}", beta1, beta2));
    }
  }
  for (const double decay : {base.weight_decay, 0.0, 0.01, 0.004, 1e-4}) {
    for (const auto form : {ir::DecayForm::kL2, ir::DecayForm::kDecoupled}) {
      ir::Optimizer o = base;
      o.weight_decay = decay, o.decay_form = form;
      if (decay == 0) o.decay_form = base.decay_form;  // without decay there is one form
      if (decay != 0 && o.kind == ir::OptimizerKind::kAdamW && form == ir::DecayForm::kL2)
        o.kind = ir::OptimizerKind::kAdam;
      add(o, decay == 0 ? std::string("no weight decay")
                        : fmt::format("{} weight decay {}", ir::name(form), decay));
    }
  }
  return all;
}

std::string explain_model(const GateJob& job, const Reference& reference, const Answer& answer) {
  const bool loss_differs = !(far(answer.loss, reference.at.loss) < kMatch);
  if (!loss_differs && gradients_off(job.workload, reference.at.gradients, answer) < kMatch) return "";
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
      if (node.op == Op::kBatchNorm) ir::set_attribute(node, "momentum", momentum);
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
