// The script is printed from top to bottom, but two parts are known only at the end. Helper functions are
// those whose names the finished text uses, and go in behind the imports (used_by); an import that nothing
// needs is taken out again. The names of helpers and of all else in a script are reserved before inputs get
// theirs (kReserved), as an input called `data` or `step` would hide a function.
//
// Blocks are planned before the model is printed, and planning prints them: whether two stretches are the
// same class is decided by their text (emit/blocks.h). So modules are planned twice, without blocks to know
// what holds for the whole model, and with them for the names.

#include "emit/torch/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/texts.h"
#include "emit/generation.h"
#include "emit/helpers.h"
#include "emit/losses.h"
#include "emit/namer.h"
#include "emit/precision.h"
#include "emit/python_script.h"
#include "emit/spelling.h"
#include "emit/torch/cuda_graphs.h"
#include "emit/torch/devices.h"
#include "emit/torch/forward.h"
#include "emit/torch/input.h"
#include "emit/torch/network_ops.h"
#include "emit/torch/ops.h"
#include "emit/torch/optimizer.h"
#include "emit/torch_rules.h"
#include "emit/updates.h"
#include "ir/dropout.h"

namespace bakeoff::embedded {
const std::vector<File>& torch_helpers();
}

namespace bakeoff::emit::torch {
namespace {

// Everything else in the script that an input must not be called.
const std::set<std::string> kReserved = {"argparse",
                                         "Callable",
                                         "PROMPT",
                                         "WORDS",
                                         "likeliest",
                                         "decode_step",
                                         "generate",
                                         "math",
                                         "Iterator",
                                         "islice",
                                         "Path",
                                         "torch",
                                         "F",
                                         "nn",
                                         "Tensor",
                                         "load_file",
                                         "save_file",
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
                                         "transform",
                                         "Samples",
                                         "Dataset",
                                         "BatchSampler",
                                         "SequentialSampler",
                                         "RandomSampler",
                                         "WORKERS",
                                         "order",
                                         "index",
                                         "scaler",
                                         "DEVICES",
                                         "RANK",
                                         "dist",
                                         "DistributedDataParallel",
                                         "distribute",
                                         "fully_shard",
                                         "module",
                                         "replica",
                                         "share",
                                         "mine",
                                         "os",
                                         "WARM_UP",
                                         "GraphedStep",
                                         "graphed_step",
                                         "train_step",
                                         "predict_step",
                                         "make_model",
                                         "make_optimizer",
                                         "RMSpropEpsInside",
                                         "AdamEpsInside",
                                         "AdamEpsHat",
                                         "DecoupledSGD",
                                         "DecoupledRMSprop",
                                         "WARMUP_STEPS",
                                         "WARMUP_FROM",
                                         "DECAY_STEPS",
                                         "FINAL_SHARE",
                                         "STEP_EVERY",
                                         "STEP_FACTOR",
                                         "CLIP_NORM",
                                         "CLIP_VALUE",
                                         "EMA_DECAY",
                                         "ACCUMULATE",
                                         "losses",
                                         "NO_DECAY",
                                         "learning_rate",
                                         "parameter_groups",
                                         "clip_gradients",
                                         "enumerate",
                                         "slice",
                                         "ValueError",
                                         "_"};

// What the ops' functions call.
const Helpers& helpers() {
  static const Helpers all(embedded::torch_helpers());
  return all;
}

std::set<std::string> reserved() {
  std::set<std::string> names = helpers().names();
  names.insert(kReserved.begin(), kReserved.end());
  return names;
}

class Script {
 public:
  Script(const Request& request, const std::vector<ir::Type>& types)
      : request_(request), workload_(request.workload), types_(types), names_(reserved()) {
    class_ = names_.name("class", camel_case(workload_.name));
    for (const ir::Input& input : workload_.inputs) {
      inputs_.push_back(names_.name("input:" + input.name, std::string_view(input.name).substr(0, 20)));
    }
    for (ir::ValueId id = 0; !predicts() && id < static_cast<int>(inputs_.size()); ++id)
      loaded_.push_back(id);
    if (predicts()) loaded_ = read_from_data(workload_, forward_inputs(workload_));
  }

  Result<std::string> text() {
    CHECK_OK(Modules::check_names(workload_));
    const Stretch whole{"", 0, workload_.model_end()};
    TRY(const Modules flat, Modules::plan(request_, types_, whole, Blocks()));
    freezes_biases_ = flat.freezes_biases();
    cells_ = flat.cells();
    blocks_ =
        Blocks::plan(workload_, types_, {.names = names_, .in_body = "self."},
                     [this](const Stretch& stretch, const Blocks& blocks) { return block(stretch, blocks); });
    TRY(const Modules modules, Modules::plan(request_, types_, whole, blocks_));
    header();
    const size_t head = out_.text().size();
    for (const Family& family : blocks_.families()) block_class(family);
    model_class(modules);
    if (!predicts()) print_optimizer_class(out_, request_.training);
    make_model();
    if (predicts()) {
      generates() ? generate() : predict_step();
    } else {
      std::vector<std::string> blocks;
      for (const Family& family : blocks_.families()) blocks.push_back(family.name);
      print_distribute(out_, request_, blocks);
      print_update_functions(out_, request_);
      print_make_optimizer(out_, request_, uses_cuda_graphs(request_));
      out_.blank(2);
      train_step();
      if (uses_cuda_graphs(request_)) print_graphed_step(out_);
    }
    print_input(out_, request_, loaded_, inputs_, on_device());
    main();
    std::string text = out_.text();
    text.insert(head,
                helpers().used_by(text.substr(head), helper_variants(precision_of(request_), predicts())));
    if (devices() > 1 && text.find("F.batch_norm(") != std::string::npos)
      return Error{
          .message =
              "torch: with several devices a batch norm that is no layer has no statistics of all rows",
          .remedy = "set devices = 1"};
    const std::string functional = "import torch.nn.functional as F\n";
    if (text.find(" F.") == std::string::npos && text.find("(F.") == std::string::npos)
      text.erase(text.find(functional), functional.size());
    return text;
  }

 private:
  bool predicts() const { return request_.training.predicts(); }
  bool generates() const { return request_.training.generates(); }
  int64_t devices() const { return devices_of(request_.settings); }
  bool equalised() const { return request_.training.equalised(); }
  bool channels_last() const { return request_.settings.at("channels_last") == "true"; }
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
  std::vector<std::string> on_device() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < inputs_.size(); ++i) all.push_back(to_device(i));
    return all;
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
  size_t rank(ir::ValueId id) const { return types_[static_cast<size_t>(id)].shape.size(); }
  // torch's cross entropy has the classes at axis 1.
  bool flattens(const ir::Node& loss) const {
    return loss.op == ir::Op::kSoftmaxCrossEntropy && rank(loss.inputs[0]) > 2;
  }
  void header();
  std::optional<Printed> block(const Stretch& stretch, const Blocks& blocks) const;
  void block_class(const Family& family);
  void model_class(const Modules& modules);
  void make_model();
  // Prints the call of the model where it cannot stand in the loss; gives what inputs and outputs are called.
  std::map<ir::ValueId, std::string> call_model();
  void print_losses();
  // log_p, frames and lengths for a ctc, and its terms.
  std::vector<std::string> ctc_terms(const ir::Node& loss, const std::string& logits,
                                     const std::string& labels);
  void train_step();
  void predict_step();
  void generate();
  void main();
  void print_training_loop();
  void print_ranks_loop();
  void print_prediction_loop();

  const Request& request_;
  const ir::Workload& workload_;
  const std::vector<ir::Type>& types_;
  Namer names_;
  Blocks blocks_;
  bool freezes_biases_ = false;
  std::vector<Cell> cells_;
  std::string class_;
  std::vector<std::string> inputs_;
  std::vector<ir::ValueId> loaded_;  // those of the workload's inputs that load_data gives
  CodeWriter out_;
};

void Script::header() {
  out_.line(fmt::format("\"\"\"{} {} {} PyTorch{}.\"\"\"",
                        generates()  ? "Generates with"
                        : predicts() ? "Predicts with"
                                     : "Trains",
                        workload_.name, predicts() ? "in" : "with",
                        devices() > 1 ? fmt::format(" on {} devices", devices()) : ""));
  out_.print("\nimport argparse\n");
  const ir::Optimizer& optimizer = request_.training.optimizer;
  if (!predicts() && (optimizer_needs_math(torch_optimizer(request_.training)) ||
                      optimizer.schedule.kind == ir::ScheduleKind::kCosine))
    out_.line("import math");
  const std::string allocator = allocator_conf(request_);
  if (!allocator.empty() || devices() > 1)
    out_.print(devices() > 1 ? "import os\nimport sys\n" : "import os\n");
  out_.line(fmt::format("from collections.abc import {}Iterator", generates() ? "Callable, " : ""));
  out_.print("from itertools import islice\nfrom pathlib import Path\n\n");
  if (!allocator.empty()) {
    out_.line(fmt::format("os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = \"{}\"", allocator));
    out_.blank();
  }
  out_.print(
      "import torch\n$dist$import torch.nn.functional as F\nfrom safetensors.torch import load_file$save$\n"
      "from torch import Tensor, nn\n$parallel$",
      {{"dist", devices() > 1 ? "import torch.distributed as dist\n" : ""},
       {"save", predicts() ? ", save_file" : ""},
       {"parallel", devices() == 1 ? ""
                    : splits_parameters(request_)
                        ? "from torch.distributed.fsdp import fully_shard\n"
                        : "from torch.nn.parallel import DistributedDataParallel\n"}});
  if (const std::string imports = input_imports(request_); !imports.empty()) out_.print(imports + "\n");
  out_.blank();
  out_.line(fmt::format("BATCH_SIZE = {}{}", request_.training.batch,
                        devices() > 1 ? "  # rows of all devices together" : ""));
  if (devices() > 1) out_.line(fmt::format("DEVICES = {}", devices()));
  for (const std::string& constant : generation_constants(request_.training)) out_.line(constant);
  if (!predicts()) {
    out_.line("LEARNING_RATE = " + python_real(optimizer.lr));
    for (const std::string& constant : update_constants(optimizer)) out_.line(constant);
    print_no_decay(out_, optimizer, canonical_names(workload_));
  }
  if (uses_cuda_graphs(request_)) out_.line("WARM_UP = 3  # steps before the capture");
  print_input_constants(out_, request_);
  out_.blank();
  out_.line(uses_cuda_graphs(request_) ? "device = \"cuda\""
                                       : "device = \"cuda\" if torch.cuda.is_available() else \"cpu\"");
  if (devices() > 1)
    out_.print(
        "RANK = int(os.environ.get(\"RANK\", \"0\"))  # of this process, set by torchrun\n"
        "if device == \"cuda\":\n    torch.cuda.set_device(RANK)\n");
  const Precision precision = precision_of(request_);
  if (precision.scaler) out_.line("scaler = torch.amp.GradScaler(device)");
  if (precision.tf32 || equalised()) {
    for (const std::string& line : precision_lines("torch.backends", precision.tf32)) out_.line(line);
  }
  if (!equalised() || (!predicts() && ir::drops(workload_))) {
    out_.line(fmt::format("torch.manual_seed({}{})", request_.training.seed, devices() > 1 ? " + RANK" : ""));
  }
  out_.blank(2);
}

// What a stretch is as a module of its own; empty where torch cannot hold it.
std::optional<Printed> Script::block(const Stretch& stretch, const Blocks& blocks) const {
  if (is_cell(cells_, stretch)) return std::nullopt;
  for (const Recurrence& found : find_recurrences(workload_, stretch.first, stretch.end))
    if (found.path == stretch.path) return std::nullopt;  // is a module of torch
  const Result<Modules> modules = Modules::plan(request_, types_, stretch, blocks);
  if (!modules) return std::nullopt;
  CodeWriter layers, body;
  modules->print(layers);
  ForwardPrinter forward(body, request_, *modules, blocks, types_, inputs_, Namer(reserved()));
  std::optional<Printed> printed = forward.print(forward_functions(), stretch);
  if (!printed) return std::nullopt;
  printed->layers = std::move(layers);
  printed->body = std::move(body);
  return printed;
}

void Script::block_class(const Family& family) {
  out_.line(fmt::format("class {}(nn.Module):", family.name));
  const auto inside = out_.indent();
  std::vector<std::string> parameters = {"self"};
  for (const Parameter& p : family.parameters) {
    parameters.push_back(p.fallback.empty() ? fmt::format("{}: {}", p.name, p.real ? "float" : "int")
                                            : fmt::format("{}: int = {}", p.name, p.fallback));
  }
  out_.call("def __init__", parameters, " -> None:");
  {
    const auto init = out_.indent();
    out_.line("super().__init__()");
    for (const Parameter& p : family.parameters) {
      if (p.in_body) out_.line(fmt::format("self.{0} = {0}", p.name));
    }
    for (const Statement& s : family.text.layers.statements()) out_.statement(s);
  }
  out_.blank();
  std::vector<std::string> inputs = {"self"};
  for (const std::string& name : family.text.formals) inputs.push_back(name + ": Tensor");
  out_.call("def forward", inputs, " -> Tensor:");
  {
    const auto body = out_.indent();
    for (const Statement& s : family.text.body.statements()) out_.statement(s);
  }
  out_.blank(2);
}

void Script::model_class(const Modules& modules) {
  out_.line(fmt::format("class {}(nn.Module):", class_));
  {
    const auto body = out_.indent();
    out_.line("def __init__(self) -> None:");
    {
      const auto init = out_.indent();
      out_.line("super().__init__()");
      modules.print(out_);
    }
    out_.blank();
    ForwardPrinter(out_, request_, modules, blocks_, types_, inputs_, names_).print(forward_functions());
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
    if (compile != "default" && compile != "off" && !uses_cuda_graphs(request_))
      out_.line(fmt::format("model.compile(mode=\"{}\")", compile));
    out_.line("return model");
  }
  out_.blank(2);
}

std::map<ir::ValueId, std::string> Script::call_model() {
  std::map<ir::ValueId, std::string> values;
  for (size_t i = 0; i < inputs_.size(); ++i) values[static_cast<ir::ValueId>(i)] = inputs_[i];
  std::vector<std::string> arguments;
  for (const ir::ValueId id : forward_inputs(workload_))
    arguments.push_back(inputs_[static_cast<size_t>(id)]);
  const std::vector<ir::ValueId> outputs = workload_.outputs();
  const ir::Node& loss = workload_.first_loss();
  const std::string call = fmt::format("model({})", join(arguments, ", "));
  const bool inside = one_loss(workload_) && outputs.size() == 1 && workload_.is_input(loss.inputs[1]) &&
                      !flattens(loss) && call.size() + values[loss.inputs[1]].size() <= 40;
  const std::vector<std::string> names =
      inside ? std::vector<std::string>{call} : output_names(workload_, names_);
  if (!inside) out_.call(fmt::format("{} = model", join(names, ", ")), arguments);
  for (size_t i = 0; i < outputs.size(); ++i) values[outputs[i]] = names[i];
  return values;
}

std::vector<std::string> Script::ctc_terms(const ir::Node& loss, const std::string& logits,
                                           const std::string& labels) {
  const std::string log_p = names_.name("ctc log_p", "log_p"), frames = names_.name("ctc frames", "frames"),
                    lengths = names_.name("ctc lengths", "lengths");
  out_.call(log_p + " = F.log_softmax", {logits, "dim=-1"}, ".transpose(0, 1)");
  out_.line(fmt::format("{} = ({} >= 0).sum(1)", lengths, labels));
  out_.line(fmt::format("{} = torch.full_like({}, {})", frames, lengths,
                        types_[static_cast<size_t>(loss.inputs[0])].shape[1]));
  return {log_p, labels, frames, lengths};
}

void Script::print_losses() {
  const std::map<ir::ValueId, std::string> values = call_model();
  const std::vector<NamedLoss> losses = named_losses(workload_, names_);
  for (const NamedLoss& loss : losses) {
    const ir::Node& node = workload_.nodes[static_cast<size_t>(loss.node)];
    const auto ignored = ir::ignore_index(node);
    const bool mean = node.word("reduction") == "mean", ctc = node.op == ir::Op::kCtc;
    const std::string& target = values.at(node.inputs[1]);
    std::vector<std::string> terms = {values.at(node.inputs[0]), target};
    if (ctc) terms = ctc_terms(node, terms[0], target);
    if (flattens(node)) {
      terms[0] += fmt::format(".flatten(0, {})", rank(node.inputs[0]) - 2);
      terms[1] += ".flatten()";
    }
    if (ignored) terms.push_back(fmt::format("ignore_index={}", *ignored));
    if (!mean || ignored || ctc) terms.push_back("reduction=\"sum\"");
    if (const double smooth = ir::label_smoothing(node); smooth != 0)
      terms.push_back("label_smoothing=" + python_real(smooth));
    out_.call(fmt::format("{} = {}", loss.name, ir::loss_spelling(node.op).torch), terms,
              mean && ctc ? fmt::format(" / len({})", target) : "");
    const bool whole = devices() > 1 && !ctc && (!mean || ignored);  // not a mean over the rows of a device
    if (mean && ignored && whole) {
      const std::string count = names_.name("count:" + loss.name, "count");
      out_.line(fmt::format("{} = ({} != {}).sum()", count, target, *ignored));
      out_.line(fmt::format("dist.all_reduce({})  # of all devices", count));
      out_.line(fmt::format("{0} = DEVICES * {0} / {1}.clamp(min=1)", loss.name, count));
    } else if (whole) {
      out_.line(fmt::format("{0} = DEVICES * {0}  # gradients are means", loss.name));
    } else if (mean && ignored) {  // torch's own mean of no targets is NaN
      out_.line(fmt::format("{0} = {0} / ({1} != {2}).sum().clamp(min=1)", loss.name, target, *ignored));
    }
  }
  for (const std::string& sum : weighted_sum(workload_, losses)) out_.line("loss = " + sum);
}

void Script::train_step() {
  const bool parts = request_.training.optimizer.accumulate > 1;
  std::vector<std::string> parameters = {"model: nn.Module", "optimizer: torch.optim.Optimizer"};
  const std::vector<std::string> inputs = parts ? std::vector<std::string>{"*batch: Tensor"} : typed_inputs();
  parameters.insert(parameters.end(), inputs.begin(), inputs.end());
  out_.call("def train_step", parameters, " -> Tensor:");
  const auto body = out_.indent();
  out_.line("optimizer.zero_grad(set_to_none=True)");
  const Precision precision = precision_of(request_);
  std::optional<CodeWriter::Scope> parted, rounded;
  if (parts) {
    out_.line("losses = []");
    out_.line("parts = zip(*(t.chunk(ACCUMULATE) for t in batch), strict=True)");
    out_.line(fmt::format("for {} in parts:", join(loaded_names(), ", ")));
    parted.emplace(out_);
  }
  if (precision.mixed()) {
    out_.line(fmt::format("with torch.autocast(device, dtype=torch.{}):", precision.half));
    rounded.emplace(out_);
  }
  print_losses();
  if (parts) out_.line("loss = loss / ACCUMULATE");
  rounded.reset();
  out_.line(precision.scaler ? "scaler.scale(loss).backward()" : "loss.backward()");
  if (parts) out_.line("losses.append(loss.detach())");
  parted.reset();
  print_update(out_, request_, precision.scaler);
  out_.print(parts ? "return torch.stack(losses).sum()\n\n\n" : "return loss.detach()\n\n\n");
}

void Script::predict_step() {
  std::vector<std::string> parameters = typed_inputs();
  parameters.insert(parameters.begin(), "model: nn.Module");
  out_.line("@torch.inference_mode()");
  const size_t count = workload_.predictions().size();
  out_.call("def predict_step", parameters, fmt::format(" -> {}:", tensors(count)));
  {
    const auto body = out_.indent();
    out_.call("return model", loaded_names(), count == 1 && workload_.outputs().size() > 1 ? "[0]" : "");
  }
  out_.blank(2);
}

constexpr const char* kClearCaches = R"(    for module in model.modules():
        if isinstance(module, GrowingCache):
            module.clear()
)";

void Script::generate() {
  const bool keeps = keeps_words(request_.settings);
  const std::string half = precision_of(request_).half;
  out_.print(keeps ? R"(def decode_step(model: nn.Module, words: Tensor, first: int) -> Tensor:
    """Logits of the word that follows `words`, the first of which stands at `first`."""
    positions = torch.arange(first, first + words.shape[1], device=words.device)
)"
                   : R"(def decode_step(model: nn.Module, read: Tensor, words: Tensor, first: int) -> Tensor:
    """Logits of the word that follows `words`, which join the others at `first`."""
    end = first + words.shape[1]
    read[:, first:end] = words
    positions = torch.arange(end - 1, end, device=read.device)
)");
  if (!half.empty()) out_.line(fmt::format("    with torch.autocast(device, dtype=torch.{}):", half));
  out_.print(fmt::format("{}    return model({}, positions)[:, -1]{}\n\n\n", half.empty() ? "" : "    ",
                         keeps ? "words" : "read", half.empty() ? "" : ".float()"));
  out_.print(R"(def likeliest(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


@torch.inference_mode()
def generate(
    model: nn.Module, rows: Tensor, choose: Callable[[Tensor], Tensor] = likeliest
) -> Iterator[Tensor]:
    """WORDS words in answer to the first PROMPT of each row, one after the other."""
    words, first = rows[:, :PROMPT], 0
$begin$    for _ in range(WORDS):
        logits = decode_step(model, $read$words, first)
        first += words.shape[1]
        words = choose(logits)[:, None]
        yield words


def predict_step(model: nn.Module, rows: Tensor) -> Tensor:
    return torch.cat(list(generate(model, rows)), dim=1)


)",
             {{"begin", !keeps                           ? "    read = torch.zeros_like(rows)\n"
                        : cache_grows(request_.settings) ? kClearCaches
                                                         : ""},
              {"read", keeps ? "" : "read, "}});
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
  out_.line("    parser.add_argument(\"--steps\", type=int, default=100)");
  if (predicts()) out_.line(std::string("    ") + kOutArgument);
  out_.line("    args = parser.parse_args()");
  if (devices() > 1)
    out_.print(R"(    if os.environ.get("WORLD_SIZE") != str(DEVICES):
        torchrun = f"torchrun --standalone --nproc-per-node {DEVICES} {__file__}"
        parser.error(f"start one process for each device: {torchrun}")
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
)");
  out_.print("\n    model = make_model()\n");
  if (equalised()) {
    const bool counts = workload_.has(ir::Op::kBatchNorm), biases = freezes_biases_;
    if (counts) out_.line("    # Not strict: BatchNorm's num_batches_tracked is not in the file.");
    if (biases) out_.line("    # Not strict: the LSTMs' second biases are not in the file.");
    out_.line(counts || biases ? "    model.load_state_dict(load_file(args.weights), strict=False)"
                               : "    model.load_state_dict(load_file(args.weights))");
  }
  predicts() ? print_prediction_loop() : print_training_loop();
  out_.print("\n\nif __name__ == \"__main__\":\n    main()\n");
}

void Script::print_training_loop() {
  const bool graphed = uses_cuda_graphs(request_);
  if (devices() > 1) return print_ranks_loop();
  out_.line("    optimizer = make_optimizer(model)");
  if (graphed) out_.line("    graphed_step = GraphedStep(model, optimizer)");
  out_.print(R"(    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
)");
  out_.line(graphed ? "        loss = graphed_step(*batch)"
                    : "        loss = train_step(model, optimizer, *batch)");
  out_.print(R"(        if step % 10 == 0:
            print(f"step {step:5d}  loss {loss.item():.6f}")
)");
}

void Script::print_ranks_loop() {
  out_.print(R"(    replica = distribute(model)
    optimizer = make_optimizer(model)
    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
        loss = train_step(replica, optimizer, *batch)
        if step % 10 == 0:
            dist.all_reduce(loss)
            if RANK == 0:
                print(f"step {step:5d}  loss {loss.item() / DEVICES:.6f}")
    dist.destroy_process_group()
    if device == "cpu":  # Threads of gloo may outlive Python, which aborts then.
        sys.stdout.flush()
        os._exit(0)
)");
}

void Script::print_prediction_loop() {
  const std::vector<std::string> names = output_names(workload_);
  std::string told = "mean output {output.mean().item():.6f}", tensor = "output.cpu().float()",
              save = "        save_file({\"output\": torch.cat(outputs).contiguous()}, args.out)\n";
  if (generates()) {
    told = "first answer {output[0].tolist()}";
    tensor = "output.cpu()";
    save = "        save_file({\"words\": torch.cat(outputs).contiguous()}, args.out)\n";
  } else if (!names.empty()) {
    told = fmt::format("mean {} {{output[0].mean().item():.6f}}", names[0]);
    tensor = "[part.cpu().float() for part in output]";
    save = fmt::format(
        "        parts = [torch.cat(parts).contiguous() for parts in zip(*outputs)]\n"
        "        save_file(dict(zip([\"{}\"], parts)), args.out)\n",
        join(names, "\", \""));
  }
  out_.print(
      R"(    data = load_data(args.data)
    steps = len(data[0]) // BATCH_SIZE if args.out else args.steps
    outputs = []
    for step, batch in enumerate(islice(batches(*data), steps)):
        output = predict_step(model, *batch)
        if step % 10 == 0:
            print(f"batch {step:5d}  $told$")
        if args.out:
            outputs.append($tensor$)
    if args.out:
$save$)",
      {{"told", told}, {"tensor", tensor}, {"save", save}});
}

}  // namespace

Result<std::string> script_text(const Request& request, const std::vector<ir::Type>& types) {
  return Script(request, types).text();
}

}  // namespace bakeoff::emit::torch
