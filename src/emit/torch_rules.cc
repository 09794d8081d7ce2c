#include "emit/torch_rules.h"

#include <algorithm>

#include "emit/code_writer.h"
#include "emit/optimizer_terms.h"

namespace bakeoff::emit {
std::string torch_leaf(ir::Op op, const std::string& slot) {
  if (ir::is_recurrent(op)) return slot == "bias" ? "bias_ih_l0" : slot + "_l0";
  return slot == "mean" || slot == "var" ? "running_" + slot : slot;
}

std::string torch_layer(const ir::Workload& workload, const ir::Node& node, bool freezes) {
  std::string path;
  bool trained = false, frozen = false;
  if (node.op == ir::Op::kParameter) return path;
  // nn.LayerNorm has a weight, nn.GroupNorm a bias too, or none.
  const bool no_layer = (node.op == ir::Op::kLayerNorm && !node.has("weight")) ||
                        (node.op == ir::Op::kGroupNorm && node.params.size() < 2);
  if (no_layer) return path;
  for (const ir::Slot& slot : node.params) {
    const ir::Parameter& p = workload.parameters[static_cast<size_t>(slot.param)];
    const std::string& name = p.name;
    const bool statistic = p.role == ir::Role::kRunningMean || p.role == ir::Role::kRunningVar;
    if (p.frozen && (statistic || !freezes)) return "";  // a buffer
    if (!statistic) (p.frozen ? frozen : trained) = true;
    if (frozen && trained) return "";
    if (leaf_of(name) != torch_leaf(node.op, slot.name) || leaf_of(name) == name) return "";
    if (!path.empty() && path != layer_of(name)) return "";
    path = layer_of(name);
  }
  for (size_t i = 0; i < workload.parameters.size(); ++i) {
    const bool inside = workload.parameters[i].name.starts_with(path + ".");
    const bool mine = std::any_of(node.params.begin(), node.params.end(), [i](const ir::Slot& slot) {
      return slot.param == static_cast<ir::ParamId>(i);
    });
    if (inside && !mine) return "";
  }
  return path;
}

int64_t torch_fan_in(const ir::Workload& workload, ir::ParamId id) {
  for (const ir::Node& node : workload.nodes) {
    const bool own = std::any_of(node.params.begin(), node.params.end(),
                                 [id](const ir::Slot& slot) { return slot.param == id; });
    const char* slot = ir::is_recurrent(node.op) ? "weight_hh" : "weight";
    if (!own || !node.has(slot)) continue;
    const ir::Shape& w = workload.parameters[static_cast<size_t>(node.param(slot))].shape;
    return ir::product(w, 1, w.size());
  }
  return 1;
}

View view_of(const ir::Shape& from, const ir::Shape& to) {
  const auto [split, _] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
  const auto head = split - from.begin();
  const auto tails = std::mismatch(from.rbegin(), from.rend() - head, to.rbegin(), to.rend() - head);
  const ir::Shape old(split, tails.first.base()), made(to.begin() + head, tails.second.base());
  // An axis that holds rows and steps at once is -1 too: nothing but the batch may be in front.
  const bool rows_stay = head > 0 && ir::product(from, 1, from.size()) == ir::product(to, 1, to.size());
  if (!rows_stay) return {};
  if (old.size() > 1 && made.size() == 1) {
    const bool last = tails.first == from.rbegin();
    View view{"flatten", {head}, {}};
    if (!last) view.axes.push_back(head + static_cast<int64_t>(old.size()) - 1);
    return view;
  }
  const bool counted = std::find(made.begin(), made.end(), ir::kSteps) == made.end();
  if (old.size() == 1 && made.size() > 1 && counted)
    return {"unflatten", {tails.first == from.rbegin() ? -1 : head}, made};
  if (old.empty() && made == ir::Shape{1}) return {"unsqueeze", {head}, {}};
  if (made.empty() && old == ir::Shape{1}) return {"squeeze", {head}, {}};
  return {};
}

View view_of(const ir::Workload& workload, const ir::Node& reshape, const ir::Shape& from) {
  const auto norms = [](const ir::Node& node) { return node.op == ir::Op::kBatchNorm; };
  const ir::ValueId input = reshape.inputs[0];
  bool beside = !workload.is_input(input) && norms(workload.producer(input));
  const auto index = static_cast<int>(&reshape - workload.nodes.data());
  for (const int reader : ir::consumers(workload, workload.output_of(index)))
    beside = beside || norms(workload.nodes[static_cast<size_t>(reader)]);
  return beside ? View{} : view_of(from, reshape.integers("shape"));
}

std::vector<int64_t> swapped_axes(const std::vector<int64_t>& perm) {
  std::vector<int64_t> moved;
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) moved.push_back(static_cast<int64_t>(i));
  return moved.size() == 2 ? moved : std::vector<int64_t>();
}

std::vector<Default> torch_defaults(const Request& request) {
  using ir::Op;
  using ir::OptimizerKind;
  const ir::Workload& w = request.workload;
  const OptimizerKind kind = request.training.optimizer.kind;
  std::vector<Default> all;
  if (ir::has_conv(w) || w.has(Op::kLinear)) {
    // kaiming_uniform_(a=sqrt(5)): bound sqrt(6 / ((1 + 5) fan_in)).
    all.push_back({topic::kWeightInit, "U(-b, b), b = 1/sqrt(fan_in) (Kaiming uniform, a = sqrt 5)"});
    all.push_back({topic::kBiasInit, "U(-b, b), b = 1/sqrt(fan_in)"});
  }
  if (w.has(Op::kLstm)) all.push_back({topic::kLstmInit, "U(-b, b), b = 1/sqrt(units), biases too"});
  if (w.has(Op::kGru)) all.push_back({topic::kGruInit, "U(-b, b), b = 1/sqrt(units), biases too"});
  if (w.has(Op::kEmbedding) || w.has(Op::kPositionEmbedding)) all.push_back({topic::kTableInit, "N(0, 1)"});
  if (kind != OptimizerKind::kSgd) {
    all.push_back({topic::kEps, "1e-8"});
    const bool adam = kind != OptimizerKind::kRmsprop;
    all.push_back({topic::kEpsForm, adam ? "outside: sqrt(v_hat) + eps" : "outside: sqrt(v) + eps"});
  }
  if (kind == OptimizerKind::kRmsprop) all.push_back({topic::kRho, "0.99"});
  all.push_back({topic::kWeightDecay, kind == OptimizerKind::kAdamW ? "0.01, decoupled" : "0"});
  if (w.has(Op::kBatchNorm)) {
    all.push_back({topic::kBatchNormEps, "1e-5"});
    all.push_back({topic::kBatchNormMomentum, "0.1"});
    all.push_back({topic::kRunningVar, "unbiased"});
  }
  if (w.has(Op::kLayerNorm)) all.push_back({topic::kLayerNormEps, "1e-5"});
  return all;
}

ir::Optimizer torch_optimizer(const ir::Training& training) {
  const bool adamw = training.optimizer.kind == ir::OptimizerKind::kAdamW;
  ir::Optimizer o = effective_optimizer(training, {.rho = 0.99,
                                                   .eps = 1e-8,
                                                   .eps_form = ir::EpsForm::kOutside,
                                                   .weight_decay = adamw ? 1e-2 : 0,
                                                   .stated = training.optimizer.stated});
  if (adamw) o.decay_form = ir::DecayForm::kDecoupled;
  return o;
}

}  // namespace bakeoff::emit
