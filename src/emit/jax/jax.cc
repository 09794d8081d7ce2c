#include "emit/jax/jax.h"

#include <fmt/format.h>

#include "emit/jax/input.h"
#include "emit/jax/ops.h"
#include "emit/jax/optimizer.h"
#include "emit/jax/script.h"
#include "emit/precision.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

using ir::Op;
using ir::OptimizerKind;

std::string environment(const Settings&) { return "jax"; }
bool supports(Op op) { return jax::op_functions().contains(op); }
bool unbiased_running_var(const Settings&) { return false; }

Result<Emitted> emit_jax(const Request& request) {
  CHECK_OK(check_supported(jax_framework(), request.workload));
  const ir::Optimizer& optimizer = request.training.optimizer;
  if (!request.training.predicts() && optimizer.kind == OptimizerKind::kRmsprop &&
      optimizer.eps_form == ir::EpsForm::kHat) {
    return Error{.message = "RMSprop has no epsilon-hat form: eps_form is outside or inside"};
  }
  TRY(const auto types, ir::infer(request.workload));
  const LayoutPlan plan = plan_layout(request.workload, types);
  Namer names(jax::reserved_names());
  const Graph graph = make_graph(request.workload, types, plan, names, request.training.predicts());
  std::vector<std::string> targets;
  for (const ir::Parameter& parameter : request.workload.parameters) targets.push_back(parameter.name);
  const std::string layout = layout_json(request.workload, plan, targets);
  return Emitted{.source = jax::script_text(request, graph, names, !layout.empty()), .layout_json = layout};
}

bool uses(const ir::Workload& workload, Op op) {
  for (const ir::Node& node : workload.nodes) {
    if (node.op == op) return true;
  }
  return false;
}

// What plain JAX has no default for is what its layer library (flax.linen) does; the script writes it out.
std::vector<Default> defaults(const Request& request) {
  std::vector<Default> all;
  const auto& workload = request.workload;
  const OptimizerKind kind = request.training.optimizer.kind;
  const auto& stated = request.training.optimizer.stated;
  const auto add = [&](const char* name, const std::string& value, const char* key = "") {
    if (!stated.contains(key)) all.push_back({name, value});
  };
  add(topic::kWeightInit, "LeCun normal (jax.nn.initializers.lecun_normal)");
  add(topic::kBiasInit, "zeros");
  if (uses(workload, Op::kLstm)) add(topic::kLstmInit, "LeCun normal, biases zero");
  if (uses(workload, Op::kEmbedding) || uses(workload, Op::kPositionEmbedding))
    add(topic::kTableInit, "normal, deviation 0.02");
  if (kind == OptimizerKind::kRmsprop) {
    add(topic::kEps, "1e-8", "eps");
    add(topic::kEpsForm, "inside: sqrt(v + eps)", "eps_form");
    add(topic::kRho, "0.9", "rho");
  } else if (kind != OptimizerKind::kSgd) {
    add(topic::kEps, "1e-8", "eps");
    add(topic::kEpsForm, "outside: sqrt(v_hat) + eps", "eps_form");
  }
  add(topic::kWeightDecay, kind == OptimizerKind::kAdamW ? "1e-4, decoupled" : "0", "weight_decay");
  if (uses(workload, Op::kBatchNorm)) {
    add(topic::kBatchNormEps, "1e-5");
    add(topic::kBatchNormMomentum, "0.01");
    add(topic::kRunningVar, "biased");
  }
  if (uses(workload, Op::kLayerNorm)) add(topic::kLayerNormEps, "1e-6");
  return all;
}

}  // namespace

const Framework& jax_framework() {
  static const Framework framework = {
      .name = "jax",
      .title = "JAX",
      .settings = {{.name = "donate",
                    .values = {"true", "false"},
                    .fallback = "true",
                    .doc = "the jitted step may reuse the memory of parameters and optimizer state",
                    .training_only = true},
                   {.name = "steps_per_call",
                    .values = {},
                    .fallback = "1",
                    .doc = "training steps in one call of a jitted lax.scan, the data resident on the device",
                    .training_only = true},
                   precision_setting("explicit casts of parameters and inputs, without loss scaling"),
                   tf32_setting("jax_default_matmul_precision")},
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict},
      .environment = environment,
      .supports = supports,
      .emit = emit_jax,
      .defaults = defaults,
      .unbiased_running_var = unbiased_running_var,
      .least_batches = jax::least_batches};
  return framework;
}

}  // namespace bakeoff::emit
