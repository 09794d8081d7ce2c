#include "emit/jax/jax.h"

#include <fmt/format.h>

#include <algorithm>

#include "emit/devices.h"
#include "emit/generation.h"
#include "emit/jax/input.h"
#include "emit/jax/ops.h"
#include "emit/jax/optimizer.h"
#include "emit/jax/script.h"
#include "emit/optimizer_terms.h"
#include "emit/precision.h"
#include "emit/python_script.h"
#include "ir/dropout.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

using ir::Op;
using ir::OptimizerKind;

std::string environment(const Settings&) { return "jax"; }
bool supports(Op op) { return jax::op_functions().contains(op); }
bool unbiased_running_var(const Settings&) { return false; }

// Each part of a batch would need a key of its own.
Status check_accumulation(const Request& request) {
  const bool drops = ir::drops(request.workload);
  if (request.training.predicts() || request.training.optimizer.accumulate == 1 || !drops) return Done{};
  return Error{.message = "jax: a script with dropout does not add up the gradients of parts of a batch",
               .remedy = "remove optimizer.accumulate, or this contender"};
}

Result<Emitted> emit_jax(const Request& request) {
  CHECK_OK(check_supported(jax_framework(), request.workload));
  CHECK_OK(check_accumulation(request));
  if (setting_or(request.settings, "parallel", "data") != "data" && !on_devices(request))
    return Error{.message = "jax: parallel = fsdp needs devices above 1"};
  CHECK_OK(check_processes(request, "jax"));
  CHECK_OK(check_devices(request, "jax: the parts of a batch would not be split over all devices"));
  CHECK_OK(check_eps_form(request.training));
  TRY(const auto types, ir::infer(request.workload));
  const LayoutPlan plan = plan_layout(request.workload, types, {.stretched_conv_transpose = true});
  Namer names(jax::reserved_names());
  Graph graph = make_graph(request.workload, types, plan, names, request.training.predicts());
  CHECK_OK(choose_loops(request, graph));
  std::vector<std::string> targets;
  for (const ir::Parameter& parameter : request.workload.parameters) targets.push_back(parameter.name);
  const std::string layout = layout_json(request.workload, plan, targets);
  const std::string source = jax::script_text(request, graph, names, !layout.empty());
  CHECK_OK(check_loops(request, graph));
  return Emitted{.source = source,
                 .layout_json = layout,
                 .example = python_example(request,
                                           "params = script.init_params(script.load_weights(weights))\n"
                                           "batch = next(script.batches(script.load_data(data)))\n"
                                           "return script.predict_step(params, *batch)\n",
                                           output_turn(request.workload, plan))};
}

std::string repeated_steps(int every) {
  return fmt::format(R"(

# Planted: every {0}th step does its work twice.
_work = train_step
_steps = 0


def train_step(params, opt_state, *batch):
    global _steps
    _steps += 1
    if _steps % {0} == 0:
        params, opt_state, _ = _work(params, opt_state, *batch)
    return _work(params, opt_state, *batch)
)",
                     every);
}

constexpr const char* kNoBarrier = R"(

# Planted: nobody waits for the last step.
jax.block_until_ready = lambda tree: tree
)";

constexpr const char* kUnreadLoss = R"(
_work = train_step


class _Unread:
    def __init__(self, loss):
        self.loss = loss

    def __float__(self):
        return 1.0


def train_step(params, opt_state, *batch):
    params, opt_state, loss = _work(params, opt_state, *batch)
    return params, opt_state, _Unread(loss)
)";

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
  if (workload.has(Op::kLstm)) add(topic::kLstmInit, "LeCun normal, biases zero");
  if (workload.has(Op::kGru)) add(topic::kGruInit, "LeCun normal, biases zero");
  if (workload.has(Op::kEmbedding) || workload.has(Op::kPositionEmbedding))
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
  if (workload.has(Op::kBatchNorm)) {
    add(topic::kBatchNormEps, "1e-5");
    add(topic::kBatchNormMomentum, "0.01");
    add(topic::kRunningVar, "biased");
  }
  if (workload.has(Op::kLayerNorm)) add(topic::kLayerNormEps, "1e-6");
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
                    .scenarios = {ir::Scenario::kTrain},
                    .tuned = {"false"}},
                   {.name = "steps_per_call",
                    .values = {},
                    .fallback = "1",
                    .doc = "training steps in one call of a jitted lax.scan, the data resident on the device",
                    .scenarios = {ir::Scenario::kTrain},
                    .steps_per_call = true,
                    .tuned = {"8"}},
                   devices_setting("a sharding of the jitted step's arguments over a mesh"),
                   {.name = "parallel",
                    .values = {"data", "fsdp"},
                    .fallback = "data",
                    .doc =
                        "what is split over devices: the rows of batches, or parameters and the optimizer's "
                        "state, too",
                    .scenarios = {ir::Scenario::kTrain}},
                   processes_setting("jax.distributed"),
                   loops_setting("jax.lax.scan"),
                   cache_setting(),
                   precision_setting("explicit casts of parameters and inputs, without loss scaling", true),
                   tf32_setting("jax_default_matmul_precision")},
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict, ir::Scenario::kGenerate},
      .module = "jax",
      .imports_besides = {"tensorflow"},
      .environment = environment,
      .packages = {.framework = "jax", .shown = {"jax", "jaxlib", "optax", "keras", "numpy"}},
      .supports = supports,
      .emit = emit_jax,
      .defaults = defaults,
      .unbiased_running_var = unbiased_running_var,
      .least_batches = jax::least_batches,
      .proof_s = 16,
      .cpu_variables = {{"JAX_PLATFORMS", "cpu"}},
      .watched_variables = {{"XLA_FLAGS", "XLA is told how to compile"}},
      .faults = {.repeated_steps = repeated_steps, .no_barrier = kNoBarrier, .unread_loss = kUnreadLoss}};
  return framework;
}

}  // namespace bakeoff::emit
