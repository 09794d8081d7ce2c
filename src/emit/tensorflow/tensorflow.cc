#include "emit/tensorflow/tensorflow.h"

#include <fmt/format.h>

#include "emit/devices.h"
#include "emit/generation.h"
#include "emit/optimizer_terms.h"
#include "emit/precision.h"
#include "emit/python_script.h"
#include "emit/tensorflow/input.h"
#include "emit/tensorflow/ops.h"
#include "emit/tensorflow/optimizer.h"
#include "emit/tensorflow/script.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

using ir::Op;
using ir::OptimizerKind;

std::string environment(const Settings&) { return "tensorflow"; }
bool supports(Op op) { return tensorflow::op_functions(false).contains(op); }
bool unbiased_running_var(const Settings&) { return false; }

// What a step over several devices is not written for.
Status check_replicas(const Request& request) {
  CHECK_OK(check_processes(request, "TensorFlow"));
  if (!on_devices(request)) return Done{};
  CHECK_OK(check_devices(request, "TensorFlow: gradients of parts of a batch are not added up"));
  for (const auto& [setting, value] :
       Settings{{"mode", "function"}, {"jit_compile", "false"}, {"steps_per_call", "1"}}) {
    if (setting_or(request.settings, setting, value) == value) continue;
    return Error{.message = fmt::format("TensorFlow: devices above 1 need {} = {}", setting, value)};
  }
  if (!tensorflow::streams(request) && !equalised(request))
    return Error{.message = "TensorFlow: rows in random order on devices above 1 need input = tf_data"};
  if (over_processes(request) && tensorflow::streams(request))
    return Error{.message = "TensorFlow: with processes above 1 each would shuffle rows for itself",
                 .remedy = "set input = \"preloaded\" and track = \"equalised\", or processes = 1"};
  return check_means(request.workload, "TensorFlow");
}

Status check_settings(const Request& request) {
  CHECK_OK(check_replicas(request));
  CHECK_OK(check_eps_form(request.training));
  if (request.settings.at("mode") == "eager" && request.settings.at("jit_compile") == "true") {
    return Error{.message = "TensorFlow: jit_compile = true needs mode = function"};
  }
  if (request.settings.at("mode") == "eager" && request.settings.at("steps_per_call") != "1") {
    return Error{.message = "TensorFlow: steps_per_call above 1 needs mode = function"};
  }
  if (request.settings.at("mode") == "eager" && setting_or(request.settings, "loops", "") == "scan")
    return Error{.message = "TensorFlow: loops = scan needs mode = function"};
  if (request.training.track == ir::Track::kAsIs && request.settings.at("steps_per_call") != "1" &&
      tensorflow::input_of(request) == "preloaded") {
    return Error{.message = "TensorFlow: shuffled steps_per_call above 1 needs input = tf_data"};
  }
  return Done{};
}

// The body of the example's predict().
std::string prediction(const Request& request) {
  const bool eager = request.settings.at("mode") == "eager";
  return fmt::format(
      "model = script.{}(script.load_weights(weights))\n"
      "batch = next(script.batches(script.load_data(data)))\n"
      "{}",
      tensorflow::class_name(request),
      eager ? "return script.predict_step(model, *batch)\n"
            : "predict_step = script.compiled(script.predict_step, model)\n"
              "return predict_step(*batch)\n");
}

Result<Emitted> emit_tensorflow(const Request& request) {
  CHECK_OK(check_supported(tensorflow_framework(), request.workload));
  CHECK_OK(check_settings(request));
  TRY(const auto types, ir::infer(request.workload));
  const LayoutPlan plan =
      plan_layout(request.workload, types, {.depthwise_kernel = tensorflow::native_depthwise});
  Namer names(tensorflow::reserved_names());
  Graph graph = make_graph(request.workload, types, plan, names, request.training.predicts());
  CHECK_OK(choose_loops(request, graph));
  const tensorflow::Model model(request, graph, names, tensorflow::class_name(request));
  const std::string layout = layout_json(request.workload, plan, model.targets());
  const std::string source = tensorflow::script_text(request, graph, names, model, !layout.empty());
  CHECK_OK(check_loops(request, graph));
  return Emitted{
      .source = source,
      .layout_json = layout,
      .example = python_example(request, prediction(request), output_turn(request.workload, plan))};
}

std::string repeated_steps(int every) {
  return fmt::format(R"(

# Planted: every {0}th step does its work twice.
_compiled = compiled


def compiled(function, *modules):
    work = _compiled(function, *modules)
    steps = 0

    def step(*batch):
        nonlocal steps
        steps += 1
        if steps % {0} == 0:
            work(*batch)
        return work(*batch)

    return step
)",
                     every);
}

// Without Keras TensorFlow has no layers and no optimizers: the script writes out what its guides write.
std::vector<Default> defaults(const Request& request) {
  std::vector<Default> all;
  const auto& workload = request.workload;
  const OptimizerKind kind = request.training.optimizer.kind;
  const auto& stated = request.training.optimizer.stated;
  const auto add = [&](const char* name, const std::string& value, const char* key = "") {
    if (!stated.contains(key)) all.push_back({name, value});
  };
  add(topic::kWeightInit, "Glorot uniform");
  add(topic::kBiasInit, "zeros");
  if (workload.has(Op::kLstm)) add(topic::kLstmInit, "Glorot uniform, biases zero");
  if (workload.has(Op::kGru)) add(topic::kGruInit, "Glorot uniform, biases zero");
  if (workload.has(Op::kEmbedding) || workload.has(Op::kPositionEmbedding))
    add(topic::kTableInit, "uniform in (-0.05, 0.05)");
  if (kind != OptimizerKind::kSgd) {
    const bool adam = kind != OptimizerKind::kRmsprop;
    add(topic::kEps, "1e-7", "eps");
    add(topic::kEpsForm, adam ? "outside: sqrt(v_hat) + eps" : "outside: sqrt(v) + eps", "eps_form");
    if (!adam) add(topic::kRho, "0.9", "rho");
  }
  add(topic::kWeightDecay, "0", "weight_decay");
  if (workload.has(Op::kBatchNorm)) {
    add(topic::kBatchNormEps, "1e-3");
    add(topic::kBatchNormMomentum, "0.01");
    add(topic::kRunningVar, "biased");
  }
  if (workload.has(Op::kLayerNorm)) add(topic::kLayerNormEps, "1e-3");
  return all;
}

}  // namespace

const Framework& tensorflow_framework() {
  static const Framework framework = {
      .name = "tensorflow",
      .title = "TensorFlow",
      .settings = {{.name = "mode",
                    .values = {"function", "eager"},
                    .fallback = "function",
                    .doc = "function: the step is a tf.function graph; eager: op by op under a GradientTape"},
                   {.name = "jit_compile",
                    .values = {"false", "true"},
                    .fallback = "false",
                    .doc = "compile the step with XLA (mode = function)",
                    .tuned = {"true"}},
                   {.name = "steps_per_call",
                    .values = {},
                    .fallback = "1",
                    .doc = "training steps in one call of a tf.function (mode = function), a tf.range loop "
                           "over data resident on the device",
                    .scenarios = {ir::Scenario::kTrain},
                    .steps_per_call = true,
                    .tuned = {"8"}},
                   {.name = "input",
                    .values = {"auto", "preloaded", "tf_data"},
                    .fallback = "auto",
                    .doc = "where batches come from: tensors preloaded on the device, or a tf.data.Dataset "
                           "with cache, shuffle and prefetch; auto: preloaded, in the as-is track tf.data "
                           "without cache",
                    .scenarios = {ir::Scenario::kTrain}},
                   devices_setting("tf.distribute.MirroredStrategy"),
                   processes_setting("tf.distribute.MultiWorkerMirroredStrategy"),
                   loops_setting("a loop over tf.range (mode = function)"),
                   cache_setting(),
                   precision_setting("explicit casts of parameters and inputs, without loss scaling", true),
                   tf32_setting("enable_tensor_float_32_execution")},
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict, ir::Scenario::kGenerate},
      .module = "tensorflow",
      .environment = environment,
      .packages = {.framework = "tensorflow", .shown = {"tensorflow-cpu", "tensorflow", "keras", "numpy"}},
      .supports = supports,
      .emit = emit_tensorflow,
      .defaults = defaults,
      .unbiased_running_var = unbiased_running_var,
      .least_batches = tensorflow::least_batches,
      .proof_s = 20,
      .worker_variables = {{"TF_CPP_MIN_LOG_LEVEL", "2"}},
      .thread_variables = {"TF_NUM_INTRAOP_THREADS"},
      .watched_variables = {{"XLA_FLAGS", "XLA is told how to compile"},
                            {"TF_XLA_FLAGS", "TensorFlow is told when to compile"},
                            {"TF_ENABLE_ONEDNN_OPTS", "TensorFlow's oneDNN kernels are switched"}},
      .faults = {.repeated_steps = repeated_steps}};
  return framework;
}

}  // namespace bakeoff::emit
