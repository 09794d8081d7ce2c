#include "emit/keras/keras.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/code_writer.h"
#include "emit/devices.h"
#include "emit/generation.h"
#include "emit/keras/defaults.h"
#include "emit/keras/dialect.h"
#include "emit/keras/input.h"
#include "emit/keras/model.h"
#include "emit/keras/optimizer.h"
#include "emit/keras/predict.h"
#include "emit/precision.h"
#include "emit/python_script.h"
#include "emit/updates.h"

namespace bakeoff::emit {
namespace {

using keras::Dialect;
using keras::ModelText;
using keras::OptimizerText;

const std::string& setting(const Request& request, const char* name) { return request.settings.at(name); }

// Keras 3 has keras.distribution; TensorFlow under it knows no such distribution, torch only several processes.
Status check_distribution(const Request& request, const Dialect& dialect) {
  if (!on_devices(request)) return Done{};
  if (dialect.backend(request.settings) != "jax") {
    return Error{.message = fmt::format(
                     "devices = {}: keras.distribution.DataParallel splits a batch on JAX, not on {}",
                     setting(request, "devices"), dialect.backend(request.settings)),
                 .remedy = "set backend = \"jax\", or devices = 1"};
  }
  if (setting(request, "jit_compile") != "false") return Done{};
  return Error{.message = "Keras on JAX: devices above 1 need a compiled step, not one op by op",
               .remedy = "leave out jit_compile, or set devices = 1"};
}

Status check(const Request& request, const Dialect& dialect) {
  CHECK_OK(check_distribution(request, dialect));
  if (dialect.backend(request.settings) == "torch" && setting(request, "steps_per_execution") != "1") {
    return Error{.message = "Keras on torch runs one step per execution",
                 .remedy = "leave out steps_per_execution with backend = \"torch\""};
  }
  if (setting_or(request.settings, "input", "numpy") == "tf_data" &&
      dialect.backend(request.settings) != "tensorflow") {
    return Error{.message = "tf.data needs TensorFlow, which is not beside " +
                            dialect.backend(request.settings) + " in its environment",
                 .remedy = "set input = \"numpy\" or \"py_dataset\""};
  }
  if (!request.training.predicts() && request.training.optimizer.accumulate > 1) {
    return Error{
        .message = dialect.title + ": a step of fit is one part of a batch, not an update from all parts",
        .remedy = "remove optimizer.accumulate, or this contender"};
  }
  if (dialect.backend(request.settings) == "tensorflow")
    CHECK_OK(check_dense_clipping(request, dialect.title + " on TensorFlow",
                                  "leave out optimizer.clip_norm and clip_value, or this contender"));
  if (request.training.precision != "float32") {
    return Error{.message = "Keras scripts are float32, not " + request.training.precision};
  }
  return Done{};
}

// The lines that keep a GPU from rounding float32 to TF32, or let it; without effect on a CPU.
std::string stated_precision(const std::string& backend, bool tf32) {
  if (backend == "tensorflow")
    return fmt::format("tf.config.experimental.enable_tensor_float_32_execution({})", python_bool(tf32));
  if (backend == "jax") {
    return fmt::format("jax.config.update(\"jax_default_matmul_precision\", \"{}\")",
                       tf32 ? "tensorfloat32" : "highest");
  }
  return join(precision_lines("torch.backends", tf32), "\n");
}

// Whether the script says what becomes of float32 products on a GPU.
bool states_tf32(const Request& request) { return equalised(request) || precision_of(request).tf32; }

// Behind the imports: what the script computes in, where that is not left to Keras.
void print_precision(CodeWriter& out, const Request& request, const Dialect& dialect) {
  const Precision precision = precision_of(request);
  const bool states = states_tf32(request);
  const char* set = dialect.second ? "mixed_precision.set_global_policy" : "config.set_dtype_policy";
  if (states) out.print(stated_precision(dialect.backend(request.settings), precision.tf32) + "\n");
  if (precision.mixed()) out.line(fmt::format("keras.{}(\"mixed_{}\")", set, precision.half));
  if (states || precision.mixed()) out.blank();
}

// Names of the package that the script uses: "layers, ops".
std::string used_names(const std::string& text) {
  std::string names;
  for (const char* name : {"layers", "ops"}) {
    if (text.find(fmt::format("{}.", name)) == std::string::npos) continue;
    names += names.empty() ? name : fmt::format(", {}", name);
  }
  return names;
}

const char* does(const Request& request) {
  if (request.training.generates()) return "Generates with";
  return request.training.predicts() ? "Predicts with" : "Trains";
}

// `text`: what follows.
void print_imports(CodeWriter& out, const Request& request, const OptimizerText& optimizer,
                   const std::string& text) {
  const std::string backend = setting(request, "backend");
  const std::string title = backend == "tensorflow" ? "TensorFlow" : backend == "jax" ? "JAX" : "torch";
  const bool predicts = request.training.predicts();
  const bool states = states_tf32(request);
  out.print("\"\"\"$does$ $name$ $with$ Keras on $title$.\"\"\"\n\nimport argparse\n",
            {{"does", does(request)},
             {"name", request.workload.name},
             {"with", predicts ? "in" : "with"},
             {"title", title}});
  if (predicts) out.line("import itertools");
  if (equalised(request)) out.line("import json");
  out.print("import os\nfrom pathlib import Path\n\nos.environ[\"KERAS_BACKEND\"] = \"$backend$\"\n\n",
            {{"backend", backend}});
  if ((states || on_devices(request)) && backend == "jax") out.line("import jax");
  out.print("import keras\nimport numpy as np\n");
  if (backend == "tensorflow" && (states || text.find("tf.data.") != std::string::npos))
    out.line("import tensorflow as tf");
  if (optimizer.torch || (states && backend == "torch")) out.line("import torch");
  if (const std::string names = used_names(text); !names.empty()) out.line("from keras import " + names);
  out.line(load_file_import(predicts));
  out.blank();
  print_precision(out, request, keras::keras_3());
}

// Before variables are made.
void print_distribution(CodeWriter& out, const Request& request) {
  out.print(
      "$devices$\n\n"
      "# Without an accelerator, DEVICES devices are made of the processors.\n"
      "jax.config.update(\"jax_num_cpu_devices\", DEVICES)\n"
      "MESH = keras.distribution.DeviceMesh(\n"
      "    (DEVICES,), [\"data\"], keras.distribution.list_devices()[:DEVICES]\n"
      ")\n"
      "keras.distribution.set_distribution(keras.distribution.DataParallel(MESH))\n",
      {{"devices", devices_constant(request)}});
}

void print_imports_2(CodeWriter& out, const Request& request, const std::string& text) {
  const bool predicts = request.training.predicts();
  out.print("\"\"\"$does$ $name$ $with$ Keras 2.\"\"\"\n\nimport argparse\n",
            {{"does", does(request)}, {"name", request.workload.name}, {"with", predicts ? "in" : "with"}});
  if (request.training.generates()) out.line("import functools");
  if (predicts) out.line("import itertools");
  if (equalised(request)) out.line("import json");
  out.print("from pathlib import Path\n\nimport numpy as np\n");
  if (states_tf32(request) || text.find("tf.") != std::string::npos) out.line("import tensorflow as tf");
  out.line("import tf_keras as keras");
  out.line(load_file_import(predicts));
  if (const std::string names = used_names(text); !names.empty()) out.line("from tf_keras import " + names);
  out.blank();
  print_precision(out, request, keras::keras_2());
}

void print_constants(CodeWriter& out, const Request& request, const OptimizerText& optimizer,
                     const std::vector<std::string>& targets) {
  const ir::Training& t = request.training;
  out.line(fmt::format("BATCH_SIZE = {}", t.batch));
  for (const std::string& constant : generation_constants(t)) out.line(constant);
  if (t.predicts()) return;
  out.line("LEARNING_RATE = " + python_real(t.optimizer.lr));
  if (optimizer.l2) out.line("WEIGHT_DECAY = " + python_real(t.optimizer.weight_decay));
  for (const std::string& constant : update_constants(t.optimizer)) out.line(constant);
  print_no_decay(out, t.optimizer, targets);
}

std::string load_weights_text(const Dialect& dialect) {
  constexpr std::string_view text = R"(def load_weights(model, path):
    """Copies weights in the common layout (kernels O, I, H, W) into the model."""
    layout = json.loads(Path(__file__).with_suffix(".layout.json").read_text())
    variables = {}
    for name, weight in load_file(path).items():
        place = layout[name]
        weight = weight.reshape(place.get("view", weight.shape))
        weight = weight.transpose(place.get("perm", range(weight.ndim)))
        weight = weight.reshape(place.get("reshape", weight.shape))
        variables[place["target"]].assign(weight)
)";
  const char* paths = "{variable.path: variable for variable in model.variables}";
  const char* names = "{v.name.removesuffix(\":0\"): v for v in model.variables}";
  return fmt::format(text, dialect.second ? names : paths);
}

// "loss = keras.losses.MeanSquaredError(reduction=...)", one argument a line where it is too long.
void print_loss(CodeWriter& out, const std::string& head, const std::string& loss, const char* tail = "") {
  const size_t open = loss.find('(');
  if (open == std::string::npos) return out.line(head + loss + tail);
  const std::string inner = loss.substr(open + 1, loss.size() - open - 2);
  std::vector<std::string> arguments;
  for (size_t at = 0; at < inner.size();) {
    const size_t comma = std::min(inner.find(", ", at), inner.size());
    arguments.push_back(inner.substr(at, comma - at));
    at = comma + 2;
  }
  out.call(head + loss.substr(0, open), arguments, tail);
}

void print_compile(CodeWriter& out, const Request& request, const OptimizerText& optimizer,
                   const ModelText& model, const Dialect& dialect) {
  const std::string& jit = setting(request, "jit_compile");
  out.line("def compile_model(model):");
  const auto body = out.indent();
  out.line("\"\"\"Sets how the model is trained.\"\"\"");
  out.call("optimizer = " + optimizer.name, optimizer.arguments);
  if (!request.training.optimizer.no_decay.empty()) {
    const char* name = dialect.second ? "v.name.removesuffix(\":0\")" : "v.path";
    out.line(fmt::format("named = {{{}: v for v in model.trainable_variables}}", name));
    out.line("kept = [named[name] for name in NO_DECAY]");
    out.line("optimizer.exclude_from_weight_decay(var_list=kept)");
  }
  if (model.losses.size() == 1) {
    print_loss(out, "loss = ", model.losses[0]);
  } else {
    out.line("losses = [");
    const auto inside = out.indent();
    for (const std::string& loss : model.losses) print_loss(out, "", loss, ",");
  }
  if (model.losses.size() > 1) out.line("]");
  std::vector<std::string> arguments = {"optimizer=optimizer",
                                        model.losses.size() > 1 ? "loss=losses" : "loss=loss"};
  if (!model.weights.empty())
    arguments.push_back(fmt::format("loss_weights=[{}]", join(model.weights, ", ")));
  arguments.push_back("jit_compile=" + (jit == "auto" ? "\"auto\"" : python_bool(jit == "true")));
  arguments.push_back("steps_per_execution=" + setting(request, "steps_per_execution"));
  out.call("model.compile", arguments);
}

constexpr const char* kLossPrinter = R"(class LossPrinter(keras.callbacks.Callback):
    """Prints the loss of every tenth step and ends the training after `steps`."""

    def __init__(self, steps):
        super().__init__()
        self.steps, self.step, self.seen, self.total = steps, 0, 0, 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self.seen, self.total = 0, 0.0

    def on_train_batch_end(self, batch, logs=None):
        # Keras reports the mean of the epoch so far.
        seen = min(batch + 1, self.params["steps"])
        total = logs["loss"] * seen
        done, loss = seen - self.seen, (total - self.total) / (seen - self.seen)
        self.seen, self.total = seen, total
        if -self.step % 10 < done:  # a multiple of ten lies in these steps
            print(f"step {self.step}: loss {loss:.6f}")
        self.step += done
        if self.step >= self.steps:
            self.model.stop_training = True
)";

void print_main(CodeWriter& out, const Request& request) {
  out.line("def main():");
  const auto body = out.indent();
  out.print(R"(folder = Path(__file__).parent
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", default=folder / "data.safetensors")
)");
  if (equalised(request))
    out.line("parser.add_argument(\"--weights\", default=folder / \"weights.safetensors\")");
  out.print(R"(parser.add_argument("--steps", type=int, default=100)
arguments = parser.parse_args()

x, y = load_data(arguments.data)
model = build_model()
)");
  if (equalised(request)) out.line("load_weights(model, arguments.weights)");
  out.print(R"(compile_model(model)
printer = LossPrinter(arguments.steps)  # ends the last epoch
fit(model, x, y, epochs=arguments.steps, callbacks=[printer])
)");
}

// From compile_model to main.
void print_training(CodeWriter& out, const Request& request, const OptimizerText& optimizer,
                    const ModelText& model, const Dialect& dialect) {
  print_compile(out, request, optimizer, model, dialect);
  out.blank(2);
  keras::print_input(out, request, model.inputs, model.losses.size());
  out.blank(2);
  out.print(kLossPrinter);
  out.blank(2);
  print_main(out, request);
}

Result<Emitted> emit_script(const Request& request, const Dialect& dialect) {
  CHECK_OK(check_supported(dialect.second ? keras2_framework() : keras_framework(), request.workload));
  CHECK_OK(check(request, dialect));
  TRY(const ModelText model, keras::model_text(request, dialect));
  OptimizerText optimizer;
  if (!request.training.predicts()) {
    TRY(optimizer, keras::optimizer_text(request.training, dialect, dialect.backend(request.settings),
                                         model.embeddings));
  }
  CodeWriter body;
  std::vector<std::string> parts = {model.load_data, model.build_model, optimizer.schedule,
                                    optimizer.subclass};
  parts.insert(parts.end(), model.loss_functions.begin(), model.loss_functions.end());
  if (equalised(request)) parts.push_back(load_weights_text(dialect));
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    body.blank(2);
    body.print(part);
  }
  body.blank(2);
  if (request.training.predicts()) {
    keras::print_prediction(body, request, dialect, model);
  } else {
    print_training(body, request, optimizer, model, dialect);
  }
  body.blank(2);
  body.print("if __name__ == \"__main__\":\n    main()\n");

  CodeWriter head;
  if (dialect.second)
    print_imports_2(head, request, body.text());
  else
    print_imports(head, request, optimizer, body.text());
  print_constants(head, request, optimizer, model.targets);
  if (on_devices(request)) print_distribution(head, request);
  return Emitted{.source = head.text() + body.text(),
                 .layout_json = model.layout_json,
                 .example = python_example(request,
                                           "model = script.build_model()\n"
                                           "script.load_weights(model, weights)\n"
                                           "script.compile_model(model)\n"
                                           "batch = next(script.batches(script.load_data(data)))\n"
                                           "return script.predict_step(model, batch)\n",
                                           model.output_turn)};
}

Result<Emitted> emit_3(const Request& request) { return emit_script(request, keras::keras_3()); }
Result<Emitted> emit_2(const Request& request) { return emit_script(request, keras::keras_2()); }
std::vector<Default> defaults_3(const Request& request) { return keras::defaults(request, keras::keras_3()); }
std::vector<Default> defaults_2(const Request& request) { return keras::defaults(request, keras::keras_2()); }
std::string environment_3(const Settings& settings) { return settings.at("backend"); }
std::string environment_2(const Settings&) { return keras::keras_2().framework; }
bool biased(const Settings&) { return false; }

// The backend torch compiles as torch does.
bool compiles_through_torch(const Settings& settings) {
  return setting_or(settings, "backend", "") == "torch" && setting_or(settings, "jit_compile", "") == "true";
}

const Setting kStepsPerExecution = {.name = "steps_per_execution",
                                    .values = {},
                                    .fallback = "1",
                                    .doc = "training steps per call of the compiled function",
                                    .scenarios = {ir::Scenario::kTrain},
                                    .steps_per_call = true,
                                    .tuned = {"8"}};
constexpr const char* kFit = "Keras's fit";  // makes an iterator, reads and resets metrics: some ten ms
constexpr const char* kPolicy = "the dtype policy mixed_bfloat16 or mixed_float16, which scales the loss";

}  // namespace

const Framework& keras_framework() {
  static const Framework framework = {
      .name = keras::keras_3().framework,
      .title = keras::keras_3().title,
      .settings = {{.name = "backend",
                    .values = {"tensorflow", "jax", "torch"},
                    .fallback = "tensorflow",
                    .doc = "what Keras computes with",
                    .always_named = true,
                    .variable = "KERAS_BACKEND"},
                   {.name = "jit_compile",
                    .values = {"auto", "true", "false"},
                    .fallback = "auto",
                    .doc = "auto: on with jax, off with torch and with TensorFlow on a CPU",
                    .tuned = {"true"}},
                   kStepsPerExecution,
                   devices_setting("keras.distribution.DataParallel (backend jax)"),
                   {.name = "input",
                    .values = {"numpy", "tf_data", "py_dataset"},
                    .fallback = "numpy",
                    .doc = "what fit gets: numpy arrays, a tf.data.Dataset with cache, shuffle and prefetch "
                           "(backend tensorflow), or a PyDataset",
                    .scenarios = {ir::Scenario::kTrain}},
                   cache_setting(),
                   precision_setting(kPolicy, true),
                   tf32_setting("of the backend")},
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict, ir::Scenario::kGenerate},
      .module = "keras",
      .also_imported = {"from tensorflow import keras", "from tensorflow.keras", "import tensorflow.keras",
                        "tf.keras.Model", "tf.keras.models", "tf.keras.Sequential"},
      .imports_besides = {"tensorflow", "jax", "torch", "onnxruntime"},
      .environment = environment_3,
      .supports = keras::has_op,
      .emit = emit_3,
      .defaults = defaults_3,
      .unbiased_running_var = biased,
      .between_epochs = kFit,
      .proof_s = 30,
      .cache = {.used = compiles_through_torch},
  };
  return framework;
}

const Framework& keras2_framework() {
  static const Framework framework = {
      .name = keras::keras_2().framework,
      .title = keras::keras_2().title,
      .settings = {{.name = "jit_compile",
                    .values = {"false", "true"},
                    .fallback = "false",
                    .doc = "compile the step with XLA",
                    .tuned = {"true"}},
                   kStepsPerExecution,
                   {.name = "input",
                    .values = {"numpy", "tf_data"},
                    .fallback = "numpy",
                    .doc =
                        "what fit gets: numpy arrays, or a tf.data.Dataset with cache, shuffle and prefetch",
                    .scenarios = {ir::Scenario::kTrain}},
                   cache_setting(),
                   precision_setting(kPolicy, true),
                   tf32_setting("enable_tensor_float_32_execution")},
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict, ir::Scenario::kGenerate},
      .module = "tf_keras",
      .imports_besides = {"tensorflow", "jax", "torch", "onnxruntime"},
      .environment = environment_2,
      .packages = {.framework = "tf-keras", .shown = {"tf-keras", "tensorflow-cpu", "tensorflow", "numpy"}},
      .supports = keras::has_op,
      .emit = emit_2,
      .defaults = defaults_2,
      .unbiased_running_var = biased,  // in the proof: float64 is beyond the fused kernel
      .between_epochs = kFit,
      .proof_s = 30,
  };
  return framework;
}

}  // namespace bakeoff::emit
