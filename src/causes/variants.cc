// A port that goes wrong usually makes one of a few mistakes: another default, another form of a formula, a
// layer that is left out. Each is written here as a changed recipe that the referee can train, and not as a
// test of the contender: so an explanation is found only where a whole training reproduces all that the
// contender answered, and a likely mistake that explains a part is not named.
//
// A mistake is made everywhere (a default of the framework) or in one place (a slip of the author), so every
// change is tried on all nodes of an op and on each alone. What cannot be applied is dropped by the shape
// rules (ir::infer). Changes of the optimizer that lead to the same optimizer are tried once, under the first
// name.

#include "causes/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/texts.h"
#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff {
namespace {

using ir::Op;

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
  for (size_t axis = 0; axis < stride.size(); ++axis) {
    // With stride s, SAME pads in total max(k - s, 0) where s divides the size; an explicit k/2 pads more.
    if (stride[axis] < 2 || pad[2 * axis] + pad[2 * axis + 1] < 1) continue;
    const int64_t total = pad[2 * axis] + pad[2 * axis + 1] - 1;
    pad[2 * axis] = total / 2;
    pad[2 * axis + 1] = total - total / 2;
  }
  ir::set_attribute(node, "pad", pad);
}

// Of the first loss, which may be one of several.
ir::Workload with_softmax_before_loss(const ir::Workload& workload) {
  ir::Workload changed = workload;
  const int at = workload.model_end();
  const ir::ValueId made = workload.output_of(at), logits = workload.prediction();
  if (workload.first_loss().op != Op::kSoftmaxCrossEntropy) return changed;
  ir::Node softmax = ir::node_with_defaults(Op::kSoftmax);
  softmax.output = "softmax_before_loss";
  softmax.inputs = {logits};
  const auto types = ir::infer(workload);
  const size_t rank = (*types)[static_cast<size_t>(logits)].shape.size();
  ir::set_attribute(softmax, "axis", static_cast<int64_t>(rank) - 1);
  for (auto node = changed.nodes.begin() + at; node != changed.nodes.end(); ++node) {
    for (ir::ValueId& id : node->inputs) id += id >= made ? 1 : 0;
  }
  changed.nodes[static_cast<size_t>(at)].inputs[0] = made;
  changed.nodes.insert(changed.nodes.begin() + at, std::move(softmax));
  return changed;
}

// Losses added with other weights than the workload's.
void add_loss_weights(const ir::Workload& workload, Changes& changes) {
  const auto terms = ir::loss_terms(workload);
  for (const ir::LossTerm& left : terms) {
    const auto weighed = [&](double own, double others) {
      ir::Workload changed = workload;
      changed.nodes.resize(static_cast<size_t>(workload.model_end()));
      ir::ValueId sum = -1;
      const auto add = [&](ir::Node node) {
        node.output = fmt::format("{}_{}", node.output, changed.nodes.size());
        changed.nodes.push_back(std::move(node));
        return changed.loss();
      };
      for (const ir::LossTerm& term : terms) {
        const double weight = term.node == left.node ? own : others * term.weight;
        ir::Node number = ir::node_with_defaults(Op::kConstant);
        ir::set_attribute(number, "value", weight);
        ir::Node product = ir::node_with_defaults(Op::kMul), total = ir::node_with_defaults(Op::kAdd);
        product.inputs = {add(workload.nodes[static_cast<size_t>(term.node)]), add(std::move(number))};
        const ir::ValueId part = add(std::move(product));
        total.inputs = {sum, part};
        sum = sum < 0 ? part : add(std::move(total));
      }
      return changed;
    };
    const std::string& name = workload.nodes[static_cast<size_t>(left.node)].output;
    if (terms.size() > 1) changes.workload(weighed(0, 1), fmt::format("the loss '{}' left out", name));
    if (left.weight != 1)
      changes.workload(weighed(1, 1), fmt::format("the loss '{}' without its weight", name));
  }
}

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

// Collects the optimizers that differ from the recipe's and from each other.
class OptimizerChanges {
 public:
  OptimizerChanges(const ir::Workload& workload, const ir::Training& training)
      : workload_(workload), training_(training) {}

  const ir::Optimizer& base() const { return training_.optimizer; }
  bool adam() const {
    return base().kind == ir::OptimizerKind::kAdam || base().kind == ir::OptimizerKind::kAdamW;
  }
  void add(const ir::Optimizer& changed, std::string words) {
    const auto known = [&](const Variant& v) { return v.training.optimizer == changed; };
    if (changed == base() || std::any_of(all_.begin(), all_.end(), known)) return;
    Variant v{std::move(words), workload_, training_};
    v.training.optimizer = changed;
    all_.push_back(std::move(v));
  }
  std::vector<Variant> take() { return std::move(all_); }

 private:
  const ir::Workload& workload_;
  const ir::Training& training_;
  std::vector<Variant> all_;
};

const char* words_of(ir::EpsForm form) {
  return form == ir::EpsForm::kInside    ? "epsilon inside the root: sqrt(v + eps)"
         : form == ir::EpsForm::kOutside ? "epsilon outside the root: sqrt(v) + eps"
                                         : "epsilon that is not bias-corrected (the 'hat' form)";
}

// Form and value of epsilon, with RMSprop's decay.
void add_epsilons(OptimizerChanges& changes) {
  const ir::Optimizer& base = changes.base();
  const bool adam = changes.adam();
  if (!adam && base.kind != ir::OptimizerKind::kRmsprop) return;
  const std::vector<double> rhos = adam ? std::vector{base.rho} : std::vector{base.rho, 0.9, 0.99};
  for (const auto form : {ir::EpsForm::kOutside, ir::EpsForm::kInside, ir::EpsForm::kHat}) {
    if (form == ir::EpsForm::kHat && !adam) continue;
    for (const double eps : {base.eps, 1e-7, 1e-8, 1e-6, 1e-5, 1e-3}) {
      for (const double rho : rhos) {
        ir::Optimizer o = base;
        o.eps_form = form, o.eps = eps, o.rho = rho;
        std::vector<std::string> words;
        if (form != base.eps_form) words.emplace_back(words_of(form));
        if (eps != base.eps) words.push_back(fmt::format("epsilon {}", eps));
        if (rho != base.rho) words.push_back(fmt::format("rho {}", rho));
        changes.add(o, join(words, ", "));
      }
    }
  }
}

void add_learning_rates(OptimizerChanges& changes) {
  for (const double factor : {0.1, 10.0, 0.5, 2.0}) {
    ir::Optimizer o = changes.base();
    o.lr *= factor;
    changes.add(o, fmt::format("learning rate {:g}", o.lr));
  }
}

void add_momenta(OptimizerChanges& changes) {
  if (changes.adam()) return;
  for (const double momentum : {0.0, 0.9, 0.99}) {
    for (const bool nesterov : {false, true}) {
      ir::Optimizer o = changes.base();
      if (nesterov && (momentum == 0 || o.kind != ir::OptimizerKind::kSgd)) continue;
      o.momentum = momentum, o.nesterov = nesterov;
      changes.add(o, fmt::format("{} {}", nesterov ? "Nesterov momentum" : "momentum", momentum));
    }
  }
}

void add_betas(OptimizerChanges& changes) {
  if (!changes.adam()) return;
  const ir::Optimizer& base = changes.base();
  for (const double beta1 : {base.beta1, 0.9, 0.5, 0.0}) {
    for (const double beta2 : {base.beta2, 0.999, 0.99, 0.98, 0.95, 0.9}) {
      ir::Optimizer o = base;
      o.beta1 = beta1, o.beta2 = beta2;
      changes.add(o, fmt::format("betas {}, {}", beta1, beta2));
    }
  }
}

void add_decays(OptimizerChanges& changes) {
  const ir::Optimizer& base = changes.base();
  for (const double decay : {base.weight_decay, 0.0, 0.01, 0.004, 1e-4}) {
    for (const auto form : {ir::DecayForm::kL2, ir::DecayForm::kDecoupled}) {
      ir::Optimizer o = base;
      o.weight_decay = decay, o.decay_form = form;
      if (decay == 0) o.decay_form = base.decay_form;  // without decay there is one form
      if (decay != 0 && o.kind == ir::OptimizerKind::kAdamW && form == ir::DecayForm::kL2)
        o.kind = ir::OptimizerKind::kAdam;
      changes.add(o, decay == 0 ? std::string("no weight decay")
                                : fmt::format("{} weight decay {}", ir::name(form), decay));
    }
  }
}

// A mistake in what surrounds the update.
void add_updates(OptimizerChanges& changes) {
  const ir::Optimizer& base = changes.base();
  const auto changed = [&](const std::string& words, const auto& change) {
    ir::Optimizer o = base;
    change(o);
    changes.add(o, words);
  };
  if (base.schedule.varies()) {
    changed("a constant learning rate", [](ir::Optimizer& o) { o.schedule = {}; });
    changed("a schedule that is one step late", [](ir::Optimizer& o) { o.schedule.late = 1; });
    changed("a schedule that is one step early", [](ir::Optimizer& o) { o.schedule.late = -1; });
  }
  if (base.schedule.warmup_steps > 0) {
    changed("no warm-up", [](ir::Optimizer& o) { o.schedule.warmup_steps = 0; });
    changed("a warm-up that begins at 0", [](ir::Optimizer& o) { o.schedule.warmup_from = 0; });
  }
  if (base.clips()) {
    changed("gradients that are not clipped", [](ir::Optimizer& o) { o.clip_norm = 0, o.clip_value = 0; });
    changed("1e-6 added to the norm of the gradients before they are clipped",
            [](ir::Optimizer& o) { o.clip_eps = o.clip_norm != 0 ? 1e-6 : 0; });
  }
  if (!base.no_decay.empty())
    changed("weight decay of every parameter", [](ir::Optimizer& o) { o.no_decay.clear(); });
}

}  // namespace

std::vector<Variant> model_variants(const ir::Workload& workload, const ir::Training& training) {
  Changes changes(workload, training);
  changes.workload(with_softmax_before_loss(workload), "softmax before a loss that takes logits");
  for (const Op op : {Op::kConv1d, Op::kConv2d, Op::kConv3d, Op::kMaxPool1d, Op::kMaxPool2d, Op::kMaxPool3d,
                      Op::kAvgPool1d, Op::kAvgPool2d, Op::kAvgPool3d}) {
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
    for (const Op op : {Op::kAvgPool1d, Op::kAvgPool2d, Op::kAvgPool3d}) {
      changes.nodes(op, count ? "average pooling that counts the padding" : "average pooling without padding",
                    [count](ir::Node& node) { ir::set_attribute(node, "count_include_pad", count); });
    }
  }
  for (const std::string reduction : {"mean", "sum"}) {
    ir::Workload changed = workload;
    for (ir::Node& node : changed.nodes) {
      if (ir::is_loss(node.op)) ir::set_attribute(node, "reduction", reduction);
    }
    changes.workload(std::move(changed), "the loss reduced by " + reduction);
  }
  add_loss_weights(workload, changes);
  const auto drop_bias = [](ir::Node& node) {
    std::erase_if(node.params, [](const ir::Slot& s) { return s.name == "bias"; });
  };
  for (const Op op : {Op::kConv1d, Op::kConv2d, Op::kConv3d})
    changes.nodes(op, "convolution without its bias", drop_bias);
  changes.nodes(Op::kLinear, "linear layer without its bias", drop_bias);
  add_missing_activations(workload, changes);
  add_other_activations(changes);
  return changes.take();
}

std::vector<Variant> optimizer_variants(const ir::Workload& workload, const ir::Training& training) {
  OptimizerChanges changes(workload, training);
  add_epsilons(changes);
  add_learning_rates(changes);
  add_momenta(changes);
  add_betas(changes);
  add_decays(changes);
  add_updates(changes);
  return changes.take();
}

}  // namespace bakeoff
