#include "emit/torch/script.h"

#include <fmt/format.h>

#include <algorithm>

#include "emit/namer.h"
#include "emit/torch/forward.h"
#include "emit/torch/optimizer.h"
#include "emit/torch_rules.h"

namespace bakeoff::emit::torch {
namespace {

constexpr size_t kColumns = 88;

// Everything else in the script that an input must not be called.
const std::set<std::string> kReserved = {"argparse",
                                         "math",
                                         "Iterator",
                                         "islice",
                                         "Path",
                                         "torch",
                                         "F",
                                         "nn",
                                         "Tensor",
                                         "load_file",
                                         "DataLoader",
                                         "TensorDataset",
                                         "BATCH_SIZE",
                                         "LEARNING_RATE",
                                         "device",
                                         "model",
                                         "optimizer",
                                         "loss",
                                         "output",
                                         "step",
                                         "args",
                                         "parser",
                                         "here",
                                         "data",
                                         "tensors",
                                         "path",
                                         "loader",
                                         "rows",
                                         "first",
                                         "batch",
                                         "batches",
                                         "load_data",
                                         "train_step",
                                         "predict_step",
                                         "make_model",
                                         "make_optimizer",
                                         "avg_pool2d_uneven",
                                         "padding_mask",
                                         "causal_padding_mask",
                                         "lstm",
                                         "RMSpropEpsInside",
                                         "AdamEpsInside",
                                         "AdamEpsHat",
                                         "DecoupledSGD",
                                         "DecoupledRMSprop",
                                         "enumerate",
                                         "slice",
                                         "ValueError",
                                         "_"};

class Script {
 public:
  Script(const Request& request, const Modules& modules, const std::vector<ir::Type>& types)
      : request_(request), workload_(request.workload), modules_(modules), types_(types), names_(kReserved) {
    class_ = names_.name("class", camel_case(workload_.name));
    for (const ir::Input& input : workload_.inputs) {
      inputs_.push_back(names_.name("input:" + input.name, std::string_view(input.name).substr(0, 20)));
    }
    for (ir::ValueId id = 0; !predicts() && id < static_cast<int>(inputs_.size()); ++id)
      loaded_.push_back(id);
    if (predicts()) loaded_ = forward_inputs(workload_);
  }

  std::string text() {
    header();
    print_helpers(out_, workload_, modules_);
    model_class();
    if (!predicts()) print_optimizer_class(out_, request_.training);
    make_model();
    if (predicts()) {
      predict_step();
    } else {
      print_make_optimizer(out_, request_.training, request_.settings.at("optimizer_impl"));
      out_.blank(2);
      train_step();
    }
    load_data();
    batches();
    main();
    std::string text = out_.text();
    const std::string functional = "import torch.nn.functional as F\n";
    if (text.find(" F.") == std::string::npos && text.find("(F.") == std::string::npos)
      text.erase(text.find(functional), functional.size());
    return text;
  }

 private:
  bool predicts() const { return request_.training.predicts(); }
  // Training in the as-is track shuffles; otherwise batches come in the order of the file.
  bool in_file_order() const { return equalised() || predicts(); }
  bool equalised() const { return request_.training.track == ir::Track::kEqualised; }
  bool channels_last() const { return request_.settings.at("channels_last") == "true"; }
  bool has(ir::Op op) const {
    return std::any_of(workload_.nodes.begin(), workload_.nodes.end(),
                       [op](const ir::Node& n) { return n.op == op; });
  }
  bool is_picture(size_t input) const {
    return workload_.inputs[input].type.dtype == ir::DType::kF32 &&
           workload_.inputs[input].type.shape.size() == 4;
  }
  // "to(device)", "to(device, memory_format=torch.channels_last)"
  std::string to_device(size_t input) const {
    return inputs_[input] + (channels_last() && is_picture(input)
                                 ? ".to(device, memory_format=torch.channels_last)"
                                 : ".to(device)");
  }
  std::string tuple_type() const {
    const size_t n = loaded_.size();
    if (n > 3) return "tuple[Tensor, ...]";
    std::string all = "Tensor";
    for (size_t i = 1; i < n; ++i) all += ", Tensor";
    return "tuple[" + all + "]";
  }
  std::vector<std::string> loaded_names() const {
    std::vector<std::string> all;
    for (const ir::ValueId id : loaded_) all.push_back(inputs_[static_cast<size_t>(id)]);
    return all;
  }
  std::vector<std::string> typed_inputs() const {
    std::vector<std::string> all;
    for (const std::string& name : loaded_names()) all.push_back(name + ": Tensor");
    return all;
  }
  // `keyword` a, b, c, in parentheses where it does not fit.
  void tuple(const std::string& keyword, const std::vector<std::string>& items) {
    const std::string joined = fmt::format("{}", fmt::join(items, ", "));
    if (items.size() == 1) return out_.line(fmt::format("{} ({},)", keyword, items[0]));
    const std::string flat = keyword + " " + joined;
    if (static_cast<size_t>(out_.column()) + flat.size() <= kColumns) return out_.line(flat);
    out_.line(keyword + " (");
    {
      const auto inside = out_.indent();
      for (const std::string& item : items) out_.line(item + ",");
    }
    out_.line(")");
  }

  void header();
  void model_class();
  void make_model();
  void train_step();
  void predict_step();
  void load_data();
  void load_input(size_t i);
  void batches();
  void refuse_short_data(const std::string& tensor);
  void file_order();
  void shuffled();
  void main();
  void print_training_loop();
  void print_prediction_loop();

  const Request& request_;
  const ir::Workload& workload_;
  const Modules& modules_;
  const std::vector<ir::Type>& types_;
  Namer names_;
  std::string class_;
  std::vector<std::string> inputs_;
  std::vector<ir::ValueId> loaded_;  // those of the workload's inputs that load_data gives
  CodeWriter out_;
};

void Script::header() {
  out_.line(fmt::format("\"\"\"{} {} {} PyTorch.\"\"\"", predicts() ? "Predicts with" : "Trains",
                        workload_.name, predicts() ? "in" : "with"));
  out_.blank();
  out_.line("import argparse");
  if (!predicts() && optimizer_needs_math(torch_optimizer(request_.training))) out_.line("import math");
  out_.print(
      "from collections.abc import Iterator\nfrom itertools import islice\nfrom pathlib import Path\n\n");
  out_.print(
      "import torch\nimport torch.nn.functional as F\nfrom safetensors.torch import load_file\n"
      "from torch import Tensor, nn\n");
  if (!in_file_order()) out_.line("from torch.utils.data import DataLoader, TensorDataset");
  out_.blank();
  out_.line(fmt::format("BATCH_SIZE = {}", request_.training.batch));
  if (!predicts()) out_.line("LEARNING_RATE = " + python_real(request_.training.optimizer.lr));
  out_.blank();
  out_.line("device = \"cuda\" if torch.cuda.is_available() else \"cpu\"");
  if (equalised()) out_.line("torch.backends.fp32_precision = \"ieee\"  # no TF32 on GPUs");
  if (!equalised() || (!predicts() && has(ir::Op::kDropout))) {
    out_.line(fmt::format("torch.manual_seed({})", request_.training.seed));
  }
  out_.blank(2);
}

void Script::model_class() {
  out_.line(fmt::format("class {}(nn.Module):", class_));
  {
    const auto body = out_.indent();
    out_.line("def __init__(self) -> None:");
    {
      const auto init = out_.indent();
      out_.line("super().__init__()");
      modules_.print(out_);
    }
    out_.blank();
    ForwardPrinter(out_, request_, modules_, types_, inputs_, names_).print();
  }
  out_.blank(2);
}

void Script::make_model() {
  const std::string& compile = request_.settings.at("compile");
  out_.line("def make_model() -> nn.Module:");
  {
    const auto body = out_.indent();
    out_.line(fmt::format("model = {}()", class_));
    out_.line(channels_last() ? "model.to(device, memory_format=torch.channels_last)" : "model.to(device)");
    if (predicts()) out_.line("model.eval()");
    if (compile == "default") out_.line("model.compile()");
    if (compile != "default" && compile != "off")
      out_.line(fmt::format("model.compile(mode=\"{}\")", compile));
    out_.line("return model");
  }
  out_.blank(2);
}

void Script::train_step() {
  std::vector<std::string> parameters = {"model: nn.Module", "optimizer: torch.optim.Optimizer"};
  for (const std::string& typed : typed_inputs()) parameters.push_back(typed);
  out_.call("def train_step", parameters, " -> Tensor:");
  const auto body = out_.indent();
  out_.line("optimizer.zero_grad(set_to_none=True)");
  std::vector<std::string> arguments;
  for (const ir::ValueId id : forward_inputs(workload_))
    arguments.push_back(inputs_[static_cast<size_t>(id)]);
  const ir::Node& loss = workload_.nodes.back();
  const bool both = computes_target(workload_);
  std::string prediction = fmt::format("model({})", fmt::join(arguments, ", "));
  std::string target = both ? "target" : inputs_[static_cast<size_t>(loss.inputs[1])];
  const bool cross_entropy = loss.op == ir::Op::kSoftmaxCrossEntropy;
  const size_t rank = types_[static_cast<size_t>(loss.inputs[0])].shape.size();
  if (both || (cross_entropy && rank > 2) || prediction.size() + target.size() > 40) {
    const std::string names = both ? names_.name("out", "prediction") + ", " + names_.name("target", "target")
                                   : names_.name("out", "prediction");
    out_.call(names + " = model", arguments);
    prediction = names_.name("out", "prediction");
    if (both) target = names_.name("target", "target");
  }
  if (cross_entropy && rank > 2) {
    prediction += fmt::format(".flatten(0, {})", rank - 2);
    target += ".flatten()";
  }
  std::vector<std::string> terms = {prediction, target};
  if (loss.word("reduction") == "sum") terms.push_back("reduction=\"sum\"");
  out_.call(cross_entropy ? "loss = F.cross_entropy" : "loss = F.mse_loss", terms);
  out_.print("loss.backward()\noptimizer.step()\nreturn loss.detach()\n\n\n");
}

void Script::predict_step() {
  std::vector<std::string> parameters = typed_inputs();
  parameters.insert(parameters.begin(), "model: nn.Module");
  out_.line("@torch.inference_mode()");
  out_.call("def predict_step", parameters, " -> Tensor:");
  {
    const auto body = out_.indent();
    out_.call("return model", loaded_names(), computes_target(workload_) ? "[0]" : "");
  }
  out_.blank(2);
}

void Script::load_input(size_t i) {
  const ir::Input& input = workload_.inputs[i];
  const double divisor = request_.training.input_divisor;
  std::string value = input.type.dtype == ir::DType::kI32 ? ".long()" : ".float()";
  if (input.type.dtype == ir::DType::kF32 && divisor != 1) value += " / " + python_real(divisor);
  const std::string line = fmt::format("{} = tensors[\"{}\"]{}", inputs_[i], input.name, value);
  if (static_cast<size_t>(out_.column()) + line.size() <= kColumns) return out_.line(line);
  out_.line(fmt::format("name = \"{}\"", input.name));
  out_.line(fmt::format("{} = tensors[name]{}", inputs_[i], value));
}

void Script::load_data() {
  out_.line(fmt::format("def load_data(path: Path) -> {}:", tuple_type()));
  {
    const auto body = out_.indent();
    out_.line("tensors = load_file(path)");
    std::vector<std::string> items;
    for (const ir::ValueId id : loaded_) {
      const auto i = static_cast<size_t>(id);
      load_input(i);
      items.push_back(in_file_order() ? to_device(i) : inputs_[i]);
    }
    tuple("return", items);
  }
  out_.blank(2);
}

void Script::batches() {
  const std::string type = fmt::format(" -> Iterator[{}]:", tuple_type());
  if (in_file_order()) {
    out_.call("def batches", typed_inputs(), type);
  } else {
    out_.call("def batches", {"*tensors: Tensor"}, type);
  }
  {
    const auto body = out_.indent();
    if (in_file_order()) {
      file_order();
    } else {
      shuffled();
    }
  }
  out_.blank(2);
}

void Script::refuse_short_data(const std::string& tensor) {
  out_.line(fmt::format("if len({}) < BATCH_SIZE:", tensor));
  const auto then = out_.indent();
  out_.line("raise ValueError(\"the data has fewer rows than one batch\")");
}

void Script::file_order() {
  out_.line("\"\"\"Endless batches in the order of the file; a partial last one is left out.\"\"\"");
  const std::vector<std::string> names = loaded_names();
  refuse_short_data(names[0]);
  out_.line("while True:");
  const auto again = out_.indent();
  out_.call("for first in range", {"0", fmt::format("len({}) - BATCH_SIZE + 1", names[0]), "BATCH_SIZE"},
            ":");
  const auto loop = out_.indent();
  out_.line("rows = slice(first, first + BATCH_SIZE)");
  std::vector<std::string> items;
  for (const std::string& name : names) items.push_back(name + "[rows]");
  tuple("yield", items);
}

void Script::shuffled() {
  out_.line("\"\"\"Endless batches, shuffled anew in each epoch.\"\"\"");
  refuse_short_data("tensors[0]");
  out_.line("data = TensorDataset(*tensors)");
  out_.line("loader = DataLoader(data, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)");
  out_.line("while True:");
  const auto again = out_.indent();
  const std::string targets = fmt::format("{}", fmt::join(inputs_, ", "));
  if (inputs_.size() == 1) {
    out_.line(fmt::format("for ({},) in loader:", targets));
  } else if (static_cast<size_t>(out_.column()) + targets.size() + 16 <= kColumns) {
    out_.line(fmt::format("for {} in loader:", targets));
  } else {
    out_.line("for (");
    {
      const auto inside = out_.indent();
      for (const std::string& name : inputs_) out_.line(name + ",");
    }
    out_.line(") in loader:");
  }
  const auto loop = out_.indent();
  std::vector<std::string> items;
  for (size_t i = 0; i < inputs_.size(); ++i) items.push_back(to_device(i));
  tuple("yield", items);
}

void Script::main() {
  out_.print(R"(def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "data.safetensors")
)");
  if (equalised()) {
    out_.line("    parser.add_argument(\"--weights\", type=Path, default=here / \"weights.safetensors\")");
  }
  out_.print(R"(    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = make_model()
)");
  if (equalised()) {
    const bool counts = has(ir::Op::kBatchNorm), biases = modules_.freezes_biases();
    if (counts) out_.line("    # Not strict: BatchNorm's num_batches_tracked is not in the file.");
    if (biases) out_.line("    # Not strict: the LSTMs' second biases are not in the file.");
    out_.line(counts || biases ? "    model.load_state_dict(load_file(args.weights), strict=False)"
                               : "    model.load_state_dict(load_file(args.weights))");
  }
  predicts() ? print_prediction_loop() : print_training_loop();
  out_.print("\n\nif __name__ == \"__main__\":\n    main()\n");
}

void Script::print_training_loop() {
  out_.print(R"(    optimizer = make_optimizer(model)
    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
        loss = train_step(model, optimizer, *batch)
        if step % 10 == 0:
            print(f"step {step:5d}  loss {loss.item():.6f}")
)");
}

void Script::print_prediction_loop() {
  out_.print(R"(    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
        output = predict_step(model, *batch)
        if step % 10 == 0:
            print(f"batch {step:5d}  mean output {output.mean().item():.6f}")
)");
}

}  // namespace

std::string script_text(const Request& request, const Modules& modules, const std::vector<ir::Type>& types) {
  return Script(request, modules, types).text();
}

}  // namespace bakeoff::emit::torch
