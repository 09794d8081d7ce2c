#include "emit/keras/keras.h"

#include <fmt/format.h>

#include "emit/code_writer.h"
#include "emit/keras/defaults.h"
#include "emit/keras/model.h"
#include "emit/keras/optimizer.h"
#include "emit/keras/predict.h"

namespace bakeoff::emit {
namespace {

using keras::ModelText;
using keras::OptimizerText;

const std::string& setting(const Request& request, const char* name) { return request.settings.at(name); }
bool equalised(const Request& request) { return request.training.track == ir::Track::kEqualised; }

Status check(const Request& request) {
  if (setting(request, "backend") == "torch" && setting(request, "steps_per_execution") != "1") {
    return Error{.message = "Keras on torch runs one step per execution",
                 .remedy = "leave out steps_per_execution with backend = \"torch\""};
  }
  if (request.training.precision != "float32") {
    return Error{.message = "Keras scripts are float32, not " + request.training.precision};
  }
  return Done{};
}

// The lines that keep a GPU from rounding float32 to TF32; without effect on a CPU.
std::string precision_lines(const std::string& backend) {
  if (backend == "tensorflow") return "tf.config.experimental.enable_tensor_float_32_execution(False)";
  if (backend == "jax") return "jax.config.update(\"jax_default_matmul_precision\", \"highest\")";
  return "torch.backends.cuda.matmul.fp32_precision = \"ieee\"\ntorch.backends.cudnn.conv.fp32_precision = "
         "\"ieee\"";
}

void print_imports(CodeWriter& out, const Request& request, const OptimizerText& optimizer) {
  const std::string& backend = setting(request, "backend");
  const std::string title = backend == "tensorflow" ? "TensorFlow" : backend == "jax" ? "JAX" : "torch";
  const bool predicts = request.training.predicts();
  out.print("\"\"\"$does$ $name$ $with$ Keras on $title$.\"\"\"\n\nimport argparse\n",
            {{"does", predicts ? "Predicts with" : "Trains"},
             {"name", request.workload.name},
             {"with", predicts ? "in" : "with"},
             {"title", title}});
  if (predicts) out.line("import itertools");
  if (equalised(request)) out.line("import json");
  out.print("import os\nfrom pathlib import Path\n\nos.environ[\"KERAS_BACKEND\"] = \"$backend$\"\n\n",
            {{"backend", backend}});
  if (equalised(request) && backend == "jax") out.line("import jax");
  out.print("import keras\nimport numpy as np\n");
  if (equalised(request) && backend == "tensorflow") out.line("import tensorflow as tf");
  if (optimizer.torch || (equalised(request) && backend == "torch")) out.line("import torch");
  out.line("KERAS_IMPORTS");
  out.print("from safetensors.numpy import load_file\n\n");
  if (equalised(request)) out.print(precision_lines(backend) + "\n\n");
}

void print_constants(CodeWriter& out, const Request& request, const OptimizerText& optimizer) {
  const ir::Training& t = request.training;
  out.line(fmt::format("BATCH_SIZE = {}", t.batch));
  if (t.predicts()) return;
  out.line("LEARNING_RATE = " + python_real(t.optimizer.lr));
  if (optimizer.l2) out.line("WEIGHT_DECAY = " + python_real(t.optimizer.weight_decay));
}

constexpr const char* kLoadWeights = R"(def load_weights(model, path):
    """Copies weights in the common layout (kernels O, I, H, W) into the model."""
    layout = json.loads(Path(__file__).with_suffix(".layout.json").read_text())
    variables = {variable.path: variable for variable in model.variables}
    for name, weight in load_file(path).items():
        place = layout[name]
        weight = weight.reshape(place.get("view", weight.shape))
        weight = weight.transpose(place.get("perm", range(weight.ndim)))
        weight = weight.reshape(place.get("reshape", weight.shape))
        variables[place["target"]].assign(weight)
)";

void print_compile(CodeWriter& out, const Request& request, const OptimizerText& optimizer,
                   const ModelText& model) {
  const std::string& jit = setting(request, "jit_compile");
  out.line("def compile_model(model):");
  const auto body = out.indent();
  out.line("\"\"\"Sets how the model is trained.\"\"\"");
  out.call("optimizer = " + optimizer.name, optimizer.arguments);
  const size_t open = model.loss.find('(');
  if (open == std::string::npos) {
    out.line("loss = " + model.loss);
  } else {
    const std::string inner = model.loss.substr(open + 1, model.loss.size() - open - 2);
    std::vector<std::string> arguments;
    for (size_t at = 0; at < inner.size();) {
      const size_t comma = std::min(inner.find(", ", at), inner.size());
      arguments.push_back(inner.substr(at, comma - at));
      at = comma + 2;
    }
    out.call("loss = " + model.loss.substr(0, open), arguments);
  }
  out.call("model.compile", {"optimizer=optimizer", "loss=loss",
                             "jit_compile=" + (jit == "auto" ? "\"auto\"" : python_bool(jit == "true")),
                             "steps_per_execution=" + setting(request, "steps_per_execution")});
}

void print_fit(CodeWriter& out, const Request& request, size_t inputs) {
  out.line("def fit(model, x, y, epochs, callbacks=None):");
  const auto body = out.indent();
  out.print(equalised(request)
                ? "\"\"\"Trains on the full batches of the data, in file order.\"\"\"\n"
                : "\"\"\"Trains on the full batches of the data, shuffled every epoch.\"\"\"\n");
  out.line("rows = len(y) // BATCH_SIZE * BATCH_SIZE");
  std::vector<std::string> arguments = {inputs == 1 ? "x[:rows]" : "[array[:rows] for array in x]",
                                        "y[:rows]", "batch_size=BATCH_SIZE", "epochs=epochs"};
  if (equalised(request)) arguments.push_back("shuffle=False");
  arguments.push_back("callbacks=callbacks");
  arguments.push_back("verbose=0");
  out.call("return model.fit", arguments);
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

std::string keras_imports(const std::string& text) {
  std::string names;
  for (const char* name : {"layers", "ops"}) {
    if (text.find(fmt::format("{}.", name)) == std::string::npos) continue;
    names += names.empty() ? name : fmt::format(", {}", name);
  }
  return names.empty() ? "" : "from keras import " + names + "\n";
}

// From compile_model to main.
void print_training(CodeWriter& out, const Request& request, const OptimizerText& optimizer,
                    const ModelText& model) {
  print_compile(out, request, optimizer, model);
  out.blank(2);
  print_fit(out, request, model.inputs);
  out.blank(2);
  out.print(kLossPrinter);
  out.blank(2);
  print_main(out, request);
}

Result<Emitted> emit_script(const Request& request) {
  CHECK_OK(check_supported(keras_framework(), request.workload));
  CHECK_OK(check(request));
  TRY(const ModelText model, keras::model_text(request));
  OptimizerText optimizer;
  if (!request.training.predicts()) {
    TRY(optimizer, keras::optimizer_text(request.training, setting(request, "backend"), model.embeddings));
  }
  CodeWriter body;
  for (const std::string& part : {model.load_data, model.build_model, optimizer.subclass, model.loss_function,
                                  std::string(equalised(request) ? kLoadWeights : "")}) {
    if (part.empty()) continue;
    body.blank(2);
    body.print(part);
  }
  body.blank(2);
  if (request.training.predicts()) {
    keras::print_prediction(body, request, model);
  } else {
    print_training(body, request, optimizer, model);
  }
  body.blank(2);
  body.print("if __name__ == \"__main__\":\n    main()\n");

  CodeWriter head;
  print_imports(head, request, optimizer);
  print_constants(head, request, optimizer);
  std::string source = head.text() + body.text();
  const std::string mark = "KERAS_IMPORTS\n";
  source.replace(source.find(mark), mark.size(), keras_imports(body.text()));
  return Emitted{.source = source, .layout_json = model.layout_json};
}

std::string environment(const Settings& settings) { return settings.at("backend"); }
bool biased(const Settings&) { return false; }

}  // namespace

const Framework& keras_framework() {
  static const Framework framework = {
      .name = "keras",
      .title = "Keras",
      .settings =
          {{"backend", {"tensorflow", "jax", "torch"}, "tensorflow", "what Keras computes with"},
           {"jit_compile",
            {"auto", "true", "false"},
            "auto",
            "auto: on with jax, off with torch and with TensorFlow on a CPU"},
           {"steps_per_execution", {}, "1", "training steps per call of the compiled function", true}},
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict},
      .environment = environment,
      .supports = keras::has_op,
      .emit = emit_script,
      .defaults = keras::defaults,
      .unbiased_running_var = biased,
  };
  return framework;
}

}  // namespace bakeoff::emit
