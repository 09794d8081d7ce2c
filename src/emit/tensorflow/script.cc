// The script is read from above: data, weights, batches, model, loss, step, loop. What a step is depends on
// three settings that change its text and not its result: eager or tf.function, XLA, and how many steps one
// call makes. Where one call makes several, a loop of the graph itself calls the same train_step and collects
// the losses, so that Python is not asked between two of them.

#include "emit/tensorflow/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/texts.h"
#include "emit/devices.h"
#include "emit/generation.h"
#include "emit/losses.h"
#include "emit/optimizer_terms.h"
#include "emit/precision.h"
#include "emit/python_script.h"
#include "emit/tensorflow/input.h"
#include "emit/tensorflow/ops.h"
#include "emit/tensorflow/optimizer.h"

namespace bakeoff::emit::tensorflow {
namespace {

using ir::Role;

class Script {
 public:
  Script(const Request& request, const Graph& graph, const Namer& names, const Model& model, bool has_layout)
      : request_(request),
        graph_(graph),
        names_(names),
        model_(model),
        has_layout_(has_layout),
        // Where the recipe leaves it open as in TensorFlow's guide to its core API: rho 0.9, beta 0.9 and
        // 0.999, epsilon 1e-7 outside the root.
        optimizer_(effective_optimizer(request.training, {})),
        class_(class_name(request)) {}

  std::string text() {
    imports();
    constants();
    print_load_data(out_, request_, graph_);
    out_.blank(2);
    if (equalised(request_)) {
      print_load_weights(out_, request_, has_layout_, true);
      out_.blank(2);
    }
    print_batches(out_, request_);
    out_.blank(2);
    const size_t head = out_.text().size();
    model_.print(out_);
    if (predicts()) {
      if (generates()) {
        generate();
      } else {
        predict_step();
        if (!eager()) compiled();
      }
      print_predict_main();
    } else {
      loss_fn();
      zeros_like();
      print_optimizer(out_, optimizer_, graph_.has(ir::Op::kEmbedding));
      out_.blank(2);
      if (groups()) {
        print_make_optimizer(out_, optimizer_, model_.targets());
        out_.blank(2);
      }
      train_step();
      if (loops()) train_steps();
      if (!eager()) compiled();
      print_main();
    }
    std::string text = out_.text();
    std::set<std::string> variants = helper_variants(precision_, predicts());
    if (!xla() && !precision_.mixed() && !on_devices(request_) && norms_pictures()) variants.insert("fused");
    if (!precision_.mixed() && linear_of_rows(graph_)) variants.insert("rows");
    if (on_devices(request_)) variants.insert("synced");
    return text.insert(head, helpers().used_by(text.substr(head), variants));
  }

 private:
  bool predicts() const { return graph_.predicts; }
  bool generates() const { return request_.training.generates(); }
  // Some parameters do not decay.
  bool groups() const { return !optimizer_.no_decay.empty(); }
  bool xla() const { return request_.settings.at("jit_compile") == "true"; }
  bool eager() const { return request_.settings.at("mode") == "eager"; }
  bool norms_pictures() const {
    return std::any_of(graph_.live.begin(), graph_.live.end(), [&](int at) {
      const ir::Node& node = graph_.workload.nodes[static_cast<size_t>(at)];
      return node.op == ir::Op::kBatchNorm &&
             graph_.types[static_cast<size_t>(node.inputs[0])].shape.size() == 4;
    });
  }
  const std::string& steps_per_call() const { return request_.settings.at("steps_per_call"); }
  bool loops() const { return tensorflow::loops(request_); }
  // The data stays on the device, and the loop picks its batches.
  bool resident() const { return tensorflow::resident(request_); }

  // True where the script draws initial values for parameters of this role.
  bool draws(Role role) const {
    if (equalised(request_)) return false;
    for (const ir::Parameter& p : request_.workload.parameters) {
      if (p.role == role) return true;
    }
    return false;
  }

  void imports() {
    const bool exact = equalised(request_);
    out_.line(fmt::format("\"\"\"{} {} {} TensorFlow.\"\"\"",
                          generates()  ? "Generates with"
                          : predicts() ? "Predicts with"
                                       : "Trains",
                          request_.workload.name, predicts() ? "in" : "with"));
    out_.blank();
    out_.line("import argparse");
    if (!eager() || generates()) out_.line("import functools");
    if (predicts() || (exact && !streams(request_))) out_.line("import itertools");
    if (over_processes(request_) || (exact && has_layout_)) out_.line("import json");
    if (draws(Role::kWeight) || graph_.has(ir::Op::kGelu)) out_.line("import math");
    if (over_processes(request_)) out_.print("import os\nimport sys\n");
    out_.print("from pathlib import Path\n\nimport numpy as np\nimport tensorflow as tf\n");
    out_.line(load_file_import(predicts()));
    out_.blank();
  }

  void constants() {
    std::vector<std::string> more;
    if (!predicts()) more = optimizer_constants(optimizer_);
    if (loops()) more.push_back("STEPS_PER_CALL = " + steps_per_call());
    if (on_devices(request_)) more.push_back(devices_constant(request_));
    print_constants(out_, request_, graph_, more);
    if (precision_.tf32) {
      out_.print("\ntf.config.experimental.enable_tensor_float_32_execution(True)\n");
    } else if (equalised(request_)) {
      out_.print(
          "\n# float32 means float32, also on a GPU that has TF32.\n"
          "tf.config.experimental.enable_tensor_float_32_execution(False)\n");
    }
    if (on_devices(request_)) strategy();
    out_.blank(2);
  }

  void strategy() {
    if (over_processes(request_))
      return out_.print(R"(
# One process for each device; TF_CONFIG says where they are, and which one this is.
if "TF_CONFIG" not in os.environ:
    workers = [f"localhost:{12355 + i}" for i in range(DEVICES)]
    task = {"type": "worker", "index": 0}
    config = json.dumps({"cluster": {"worker": workers}, "task": task})
    every = f"index 0 to {DEVICES - 1}: TF_CONFIG='{config}' python {__file__}"
    sys.exit(f"start one process for each device, {every}")
PROCESS = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
GPUS = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(GPUS[PROCESS : PROCESS + 1], "GPU")
STRATEGY = tf.distribute.MultiWorkerMirroredStrategy()
)");
    out_.print(R"(
# Without GPUs, the processor is split into DEVICES logical devices.
KIND = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
if KIND == "CPU":
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * DEVICES,
    )
STRATEGY = tf.distribute.MirroredStrategy([f"{KIND}:{i}" for i in range(DEVICES)])
)");
  }

  std::vector<std::string> forward_inputs() const { return graph_.forward_names(); }

  // The inputs that losses alone compare with the outputs.
  std::vector<std::string> targets() const {
    const ir::Workload& workload = graph_.workload;
    std::set<ir::ValueId> read;
    for (size_t n = static_cast<size_t>(workload.model_end()); n < workload.nodes.size(); ++n) {
      for (const ir::ValueId id : workload.nodes[n].inputs) {
        if (workload.is_input(id) && id != workload.prediction()) read.insert(id);
      }
    }
    std::vector<std::string> names;
    for (const ir::ValueId id : read) names.push_back(graph_.inputs[static_cast<size_t>(id)]);
    return names;
  }

  // Of the outputs as `given`, then of the targets.
  std::vector<std::string> loss_signature(std::vector<std::string> given) const {
    const std::vector<std::string> more = targets();
    given.insert(given.end(), more.begin(), more.end());
    return given;
  }

  void loss_fn() {
    Namer names = names_;
    const std::vector<std::string> outputs = loss_arguments(graph_, names);
    out_.call("def loss_fn", loss_signature(outputs), ":");
    {
      const auto body = out_.indent();
      const bool one = one_loss(graph_.workload);
      const auto print = [&](const ir::Node& loss, const std::string& prediction, const std::string& target,
                             const std::string& variable) {
        print_loss(out_, loss, prediction, target, one ? "" : variable);
      };
      print_losses(out_, graph_, outputs, names, "tf.transpose", print);
      if (!one) out_.line("return loss");
    }
    out_.blank(2);
  }

  void zeros_like() {
    if (optimizer_.kind == ir::OptimizerKind::kSgd && optimizer_.momentum == 0 && optimizer_.ema == 0) return;
    out_.print(
        "def zeros_like(variables):\n"
        "    return [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]\n\n\n");
  }

  void compiled() {
    out_.print(
        "def compiled(function, *modules):\n"
        "    \"\"\"The graph of `function`, called with tensors alone.\n\n"
        "    Modules among the arguments of each call cost it a tenth of a millisecond.\n"
        "    \"\"\"\n"
        "    return tf.function(functools.partial(function, *modules)$xla$)\n\n\n",
        {{"xla", xla() ? ", jit_compile=True" : ""}});
  }

  // Each device has the mean over its rows, all of them as many.
  void train_step_on_devices() {
    std::vector<std::string> parameters = {"model", "optimizer"};
    parameters.insert(parameters.end(), graph_.inputs.begin(), graph_.inputs.end());
    out_.call("def train_step", parameters, ":");
    const auto body = out_.indent();
    out_.call("def part", graph_.inputs, ":");
    {
      const auto inner = out_.indent();
      tape();
      out_.call("return loss, tape.gradient", gradient_arguments());
    }
    out_.blank();
    const std::string tail = graph_.inputs.size() == 1 ? "," : "";
    out_.call("loss, gradients = STRATEGY.run",
              {"part", fmt::format("args=({}{})", join(graph_.inputs, ", "), tail)});
    out_.print(
        "gradients = [STRATEGY.reduce(\"sum\", g, axis=None) for g in gradients]\n"
        "optimizer.apply_gradients(gradients)\n"
        "return STRATEGY.reduce(\"sum\", loss, axis=None)\n");
  }

  void tape() {
    out_.line("with tf.GradientTape() as tape:");
    const auto inner = out_.indent();
    Namer names = names_;
    std::vector<std::string> outputs = loss_arguments(graph_, names);
    outputs[0] = "prediction";
    out_.call(fmt::format("{} = model", join(outputs, ", ")), forward_inputs());
    const bool shares = on_devices(request_) && means(graph_.workload);
    out_.call("loss = loss_fn", loss_signature(outputs), shares ? " / DEVICES" : "");
    if (optimizer_.accumulate > 1) out_.line("loss = loss / ACCUMULATE");
  }

  std::vector<std::string> gradient_arguments() const {
    std::vector<std::string> arguments = {"loss", "optimizer.targets"};
    if (graph_.has_idle_parameters()) arguments.push_back("unconnected_gradients=\"zero\"");
    return arguments;
  }

  void train_step() {
    if (on_devices(request_)) {
      train_step_on_devices();
      return out_.blank(2);
    }
    const bool parts = optimizer_.accumulate > 1;
    std::vector<std::string> parameters = {"model", "optimizer"};
    const std::vector<std::string> inputs = parts ? std::vector<std::string>{"*batch"} : graph_.inputs;
    parameters.insert(parameters.end(), inputs.begin(), inputs.end());
    out_.call("def train_step", parameters, ":");
    {
      const auto body = out_.indent();
      std::optional<CodeWriter::Scope> parted;
      if (parts) {
        out_.line("losses, sums = [], None");
        out_.line("parts = zip(*(tf.split(t, ACCUMULATE) for t in batch), strict=True)");
        out_.line(fmt::format("for {} in parts:", join(graph_.inputs, ", ")));
        parted.emplace(out_);
      }
      tape();
      out_.call("gradients = tape.gradient", gradient_arguments());
      if (parts) {
        if (graph_.has(ir::Op::kEmbedding))
          out_.line("gradients = [tf.convert_to_tensor(g) for g in gradients]");
        out_.print(
            "if sums is not None:\n"
            "    gradients = [s + g for s, g in zip(sums, gradients, strict=True)]\n"
            "sums = gradients\nlosses.append(loss)\n");
        parted.reset();
      }
      out_.line(parts ? "optimizer.apply_gradients(sums)" : "optimizer.apply_gradients(gradients)");
      out_.line(parts ? "return tf.add_n(losses)" : "return loss");
    }
    out_.blank(2);
  }

  void predict_step() {
    std::vector<std::string> parameters = forward_inputs();
    parameters.insert(parameters.begin(), "model");
    out_.call("def predict_step", parameters, ":");
    {
      const auto body = out_.indent();
      out_.call("return model", forward_inputs());
    }
    out_.blank(2);
  }

  void generate() {
    const bool keeps = keeps_words(request_.settings);
    print_tensorflow_decode(out_, keeps);
    if (!eager()) compiled();
    const char* made = "        model.decode = compiled(decode_step, model)\n";
    print_tensorflow_generate(out_, keeps, eager() ? "" : made);
  }

  void print_predict_main() {
    out_.line("def main():");
    {
      const auto body = out_.indent();
      print_arguments(out_, request_);
      out_.blank();
      out_.line(
          fmt::format("model = {}({})", class_, equalised(request_) ? "load_weights(args.weights)" : ""));
      const bool compiled = !generates() && !eager();
      if (compiled) out_.line("predict = compiled(predict_step, model)");
      print_predict_loop(out_, request_,
                         {.step = compiled ? "predict(*next(data))" : "predict_step(model, *next(data))",
                          .mean = "float(tf.reduce_mean(output))",
                          .to_numpy = generates() ? ".numpy()" : "",
                          .turn = output_turn(request_.workload, graph_.plan)});
    }
    out_.print("\n\nif __name__ == \"__main__\":\n    main()\n");
  }

  void train_steps() {
    std::vector<std::string> parameters = {"model", "optimizer"};
    parameters.insert(parameters.end(), graph_.inputs.begin(), graph_.inputs.end());
    if (resident()) parameters.push_back("first");
    out_.call("def train_steps", parameters, ":");
    {
      const auto body = out_.indent();
      out_.print(
          "\"\"\"STEPS_PER_CALL training steps in one call.\"\"\"\n"
          "losses = tf.TensorArray(optimizer.targets[0].dtype, STEPS_PER_CALL)\n");
      out_.line("for i in tf.range(STEPS_PER_CALL):");
      {
        const auto loop = out_.indent();
        std::string index = "i";
        if (resident()) {
          out_.line(fmt::format("turn = (first + i) % len({})", graph_.inputs[0]));
          index = "turn";
        }
        std::vector<std::string> arguments = {"model", "optimizer"};
        for (const std::string& input : graph_.inputs)
          arguments.push_back(fmt::format("{}[{}]", input, index));
        out_.call("loss = train_step", arguments);
        out_.line("losses = losses.write(i, loss)");
      }
      out_.line("return losses.stack()");
    }
    out_.blank(2);
  }

  void print_main() {
    out_.line("def main():");
    {
      const auto body = out_.indent();
      print_arguments(out_, request_);
      out_.blank();
      std::optional<CodeWriter::Scope> scope;
      if (on_devices(request_)) {
        out_.line("with STRATEGY.scope():");
        scope.emplace(out_);
      }
      out_.line(
          fmt::format("model = {}({})", class_, equalised(request_) ? "load_weights(args.weights)" : ""));
      const std::string name = optimizer_name(optimizer_.kind);
      out_.line(groups() ? "optimizer = make_optimizer(model)"
                         : fmt::format("optimizer = {}(model.trainable_variables)", name));
      scope.reset();
      out_.line("data = batches(load_data(args.data))");
      print_loop();
    }
    out_.print("\n\nif __name__ == \"__main__\":\n    main()\n");
  }

  void print_loop() {
    if (loops()) {
      out_.print(
          "train = compiled(train_steps, model, optimizer)\n"
          "for step in range(0, args.steps, STEPS_PER_CALL):\n"
          "    losses = train(*next(data))\n"
          "    print(f\"step {step}: loss {float(losses[0]):.6f}\")\n");
    } else {
      if (!eager()) out_.line("train = compiled(train_step, model, optimizer)");
      out_.print(
          "for step in range(args.steps):\n"
          "    loss = $train$*next(data))\n"
          "    if step % 10 == 0$first$:\n        print(f\"step {step}: loss {float(loss):.6f}\")\n",
          {{"first", over_processes(request_) ? " and PROCESS == 0" : ""},
           {"train", eager() ? "train_step(model, optimizer, " : "train("}});
    }
  }

  CodeWriter out_;
  const Request& request_;
  const Graph& graph_;
  const Namer& names_;
  const Model& model_;
  bool has_layout_;
  ir::Optimizer optimizer_;
  Precision precision_ = precision_of(request_);
  std::string class_;
};

}  // namespace

std::string class_name(const Request& request) {
  const std::string name = camel_case(request.workload.name);
  const bool taken =
      !request.training.predicts() && name == optimizer_name(effective_optimizer(request.training, {}).kind);
  return taken ? name + "Model" : name;
}

std::string script_text(const Request& request, const Graph& graph, const Namer& names, const Model& model,
                        bool has_layout) {
  return Script(request, graph, names, model, has_layout).text();
}

}  // namespace bakeoff::emit::tensorflow
