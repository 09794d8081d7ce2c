#include "emit/onnxruntime/onnxruntime.h"

#include "emit/generation.h"
#include "emit/onnxruntime/graph_printer.h"
#include "emit/onnxruntime/script.h"
#include "emit/python_script.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

std::string environment(const Settings&) { return "onnxruntime"; }
bool supports(ir::Op op) { return onnxruntime::op_functions().contains(op); }
bool unbiased_running_var(const Settings&) { return false; }

// Names that an input of the workload cannot have in the script.
std::set<std::string> reserved_names() {
  return {"np",          "ort",          "helper",     "numpy_helper", "load_file",    "save_file",
          "argparse",    "itertools",    "Path",       "data",         "path",         "arrays",
          "args",        "parser",       "here",       "session",      "output",       "predict_step",
          "feed",        "binding",      "BATCH_SIZE", "OPSET",        "PROVIDER",     "DEVICE",
          "build_model", "make_session", "batches",    "load_data",    "load_weights", "Decoder",
          "decoder",     "generate",     "likeliest",  "empty_cache",  "PROMPT",       "WORDS"};
}

Status check(const Request& request) {
  CHECK_OK(check_supported(onnxruntime_framework(), request.workload));
  if (!request.training.predicts()) {
    return Error{.message = "ONNX Runtime does not train", .remedy = "set scenario = \"predict\""};
  }
  if (request.training.track == ir::Track::kAsIs) {
    return Error{.message = "ONNX Runtime has no initialisers of its own: there is no track as-is for it",
                 .remedy = "use track = \"equalised\""};
  }
  return Done{};
}

Result<Emitted> emit_script(const Request& request) {
  CHECK_OK(check(request));
  TRY(const auto types, ir::infer(request.workload));
  LayoutPlan plan;  // everything as the workload has it
  plan.values.assign(static_cast<size_t>(request.workload.value_count()), Order::kCanonical);
  Namer names(reserved_names());
  const Graph graph = make_graph(request.workload, types, plan, names, true);
  return Emitted{.source = onnxruntime::script_text(request, graph),
                 .example = python_example(
                     request,
                     "session = script.make_session(script.build_model(script.load_weights(weights)))\n"
                     "batch = next(script.batches(script.load_data(data)))\n"
                     "return script.predict_step(session, *batch)\n")};
}

}  // namespace

const Framework& onnxruntime_framework() {
  static const Framework framework = {
      .name = "onnxruntime",
      .title = "ONNX Runtime",
      .settings = {{.name = "optimization",
                    .values = {"disabled", "basic", "extended", "all"},
                    .fallback = "all",
                    .doc = "which rewrites of the graph the session makes (GraphOptimizationLevel)",
                    .tuned = {"extended"}},
                   {.name = "io_binding",
                    .values = {"false", "true"},
                    .fallback = "false",
                    .doc = "inputs and output as OrtValues bound to the device, not numpy arrays",
                    .scenarios = {ir::Scenario::kPredict},
                    .tuned = {"true"}},
                   {.name = "provider",
                    .values = {"cpu", "cuda", "tensorrt"},
                    .fallback = "cpu",
                    .doc = "what the session runs on; where it would fall back to another one the contender "
                           "fails"},
                   cache_setting(true)},
      .scenarios = {ir::Scenario::kPredict, ir::Scenario::kGenerate},
      .module = "onnxruntime",
      .imports_besides = {"torch", "jax", "tensorflow"},  // which may have exported the graph
      .environment = environment,
      .packages = {.framework = "onnxruntime", .shown = {"onnxruntime", "onnxruntime-gpu", "onnx", "numpy"}},
      .supports = supports,
      .emit = emit_script,
      .unbiased_running_var = unbiased_running_var,
      .weights_are_constants = true,
      .proof_s = 4};
  return framework;
}

}  // namespace bakeoff::emit
