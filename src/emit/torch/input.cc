#include "emit/torch/input.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/torch/devices.h"
#include "emit/torch/forward.h"

namespace bakeoff::emit::torch {
namespace {

// Training in the as-is track shuffles; otherwise batches come in the order of the file.
bool in_file_order(const Request& request) {
  return request.training.track == ir::Track::kEqualised || request.training.predicts();
}

std::string workers(const Request& request) { return setting_or(request.settings, "workers", "0"); }

class Printer {
 public:
  Printer(CodeWriter& out, const Request& request, const std::vector<ir::ValueId>& loaded,
          const std::vector<std::string>& names, const std::vector<std::string>& on_device)
      : out_(out), request_(request), input_(input_of(request)) {
    for (const ir::ValueId id : loaded) {
      const auto i = static_cast<size_t>(id);
      ids_.push_back(i);
      names_.push_back(names[i]);
      on_device_.push_back(on_device[i]);
    }
  }

  void print() {
    load_data();
    if (input_ == Input::kDataset) samples();
    batches();
  }

 private:
  std::string tuple_type() const {
    if (names_.size() > 3) return "tuple[Tensor, ...]";
    return fmt::format("tuple[{}]", join(std::vector<std::string>(names_.size(), "Tensor"), ", "));
  }
  std::vector<std::string> typed() const {
    std::vector<std::string> all;
    for (const std::string& name : names_) all.push_back(name + ": Tensor");
    return all;
  }
  // `keyword` a, b, c, in parentheses where it does not fit.
  void tuple(const std::string& keyword, const std::vector<std::string>& items) {
    if (items.size() == 1) return out_.line(fmt::format("{} ({},)", keyword, items[0]));
    const std::string flat = fmt::format("{} {}", keyword, join(items, ", "));
    if (static_cast<size_t>(out_.column()) + flat.size() <= kColumns) return out_.line(flat);
    out_.line(keyword + " (");
    {
      const auto inside = out_.indent();
      for (const std::string& item : items) out_.line(item + ",");
    }
    out_.line(")");
  }

  // What makes a model's input of a stored tensor: ".float() / 255.0"
  std::string conversion(size_t n) const {
    const ir::Input& input = request_.workload.inputs[ids_[n]];
    if (input.type.dtype == ir::DType::kI32) return ".long()";
    const double divisor = request_.training.input_divisor;
    return divisor == 1 ? ".float()" : ".float() / " + python_real(divisor);
  }

  void load_input(size_t n) {
    const std::string& name = request_.workload.inputs[ids_[n]].name;
    const std::string line = fmt::format("{} = tensors[\"{}\"]{}", names_[n], name, conversion(n));
    if (static_cast<size_t>(out_.column()) + line.size() <= kColumns) return out_.line(line);
    out_.line(fmt::format("name = \"{}\"", name));
    out_.line(fmt::format("{} = tensors[name]{}", names_[n], conversion(n)));
  }

  void load_data() {
    out_.line(fmt::format("def load_data(path: Path) -> {}:", tuple_type()));
    {
      const auto body = out_.indent();
      if (input_ == Input::kDataset) out_.line("\"\"\"The samples as they are stored.\"\"\"");
      out_.line("tensors = load_file(path)");
      std::vector<std::string> items;
      for (size_t n = 0; n < names_.size(); ++n) {
        if (input_ == Input::kDataset) {
          items.push_back(fmt::format("tensors[\"{}\"]", request_.workload.inputs[ids_[n]].name));
          continue;
        }
        load_input(n);
        items.push_back(input_ == Input::kPreloaded ? on_device_[n] : names_[n]);
      }
      tuple("return", items);
    }
    out_.blank(2);
  }

  void samples() {
    out_.call("def transform", typed(), fmt::format(" -> {}:", tuple_type()));
    {
      const auto body = out_.indent();
      out_.line("\"\"\"A stored sample as the model takes it.\"\"\"");
      std::vector<std::string> items;
      for (size_t n = 0; n < names_.size(); ++n) items.push_back(names_[n] + conversion(n));
      tuple("return", items);
    }
    out_.blank(2);
    out_.print(R"(class Samples(Dataset):
    """Single samples, transformed when they are asked for."""

    def __init__(self, *tensors: Tensor) -> None:
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, index: int) -> $type$:
        return transform(*[tensor[index] for tensor in self.tensors])


)",
               {{"type", tuple_type()}});
  }

  void batches() {
    const std::string type = fmt::format(" -> Iterator[{}]:", tuple_type());
    const bool slices = input_ == Input::kPreloaded;
    out_.call("def batches", slices ? typed() : std::vector<std::string>{"*tensors: Tensor"}, type);
    {
      const auto body = out_.indent();
      out_.line(
          in_file_order(request_)
              ? devices_of(request_.settings) > 1
                    ? "\"\"\"Endless batches in the order of the file, of each this device's rows.\"\"\""
                    : "\"\"\"Endless batches in the order of the file; a partial last one is left out.\"\"\""
              : "\"\"\"Endless batches, shuffled anew in each epoch.\"\"\"");
      out_.line(fmt::format("if len({}) < BATCH_SIZE:", slices ? names_[0] : "tensors[0]"));
      {
        const auto then = out_.indent();
        out_.line("raise ValueError(\"the data has fewer rows than one batch\")");
      }
      if (!slices) loader();
      if (devices_of(request_.settings) > 1) out_.line("share = BATCH_SIZE // DEVICES");
      out_.line("while True:");
      const auto again = out_.indent();
      slices ? sliced() : loaded();
    }
    out_.blank(2);
  }

  void sliced() {
    const std::string& first = names_[0];
    if (!in_file_order(request_))
      out_.line(fmt::format("order = torch.randperm(len({}), device=device)", first));
    out_.call("for first in range", {"0", fmt::format("len({}) - BATCH_SIZE + 1", first), "BATCH_SIZE"}, ":");
    const auto loop = out_.indent();
    if (devices_of(request_.settings) > 1) {
      out_.print("mine = first + RANK * share\nrows = slice(mine, mine + share)\n");
    } else {
      out_.line(in_file_order(request_) ? "rows = slice(first, first + BATCH_SIZE)"
                                        : "rows = order[first : first + BATCH_SIZE]");
    }
    std::vector<std::string> items;
    for (const std::string& name : names_) items.push_back(name + "[rows]");
    tuple("yield", items);
  }

  void loader() {
    const bool whole = input_ == Input::kBatchedIndex;
    out_.line(input_ == Input::kDataset ? "data = Samples(*tensors)" : "data = TensorDataset(*tensors)");
    std::vector<std::string> arguments = {"data", "batch_size=BATCH_SIZE"};
    if (whole) {
      const char* order = in_file_order(request_) ? "SequentialSampler" : "RandomSampler";
      out_.line(fmt::format("rows = BatchSampler({}(data), BATCH_SIZE, drop_last=True)", order));
      arguments = {"data", "sampler=rows", "batch_size=None"};  // the dataset is asked for a list of rows
    }
    if (!whole && !in_file_order(request_)) arguments.push_back("shuffle=True");
    if (!whole) arguments.push_back("drop_last=True");
    if (workers(request_) != "0") arguments.push_back("num_workers=WORKERS");
    out_.call("loader = DataLoader", arguments);
  }

  void loaded() {
    const std::string targets = join(names_, ", ");
    if (names_.size() == 1) {
      out_.line(fmt::format("for ({},) in loader:", targets));
    } else if (static_cast<size_t>(out_.column()) + targets.size() + 16 <= kColumns) {
      out_.line(fmt::format("for {} in loader:", targets));
    } else {
      out_.line("for (");
      {
        const auto inside = out_.indent();
        for (const std::string& name : names_) out_.line(name + ",");
      }
      out_.line(") in loader:");
    }
    const auto loop = out_.indent();
    tuple("yield", on_device_);
  }

  CodeWriter& out_;
  const Request& request_;
  const Input input_;
  std::vector<size_t> ids_;
  std::vector<std::string> names_, on_device_;  // of what is loaded
};

}  // namespace

Input input_of(const Request& request) {
  const std::string input = setting_or(request.settings, "input", "auto");
  if (input == "tensor_dataset") return Input::kTensorDataset;
  if (input == "dataset") return Input::kDataset;
  if (input == "batched_index") return Input::kBatchedIndex;
  return input == "preloaded" || in_file_order(request) ? Input::kPreloaded : Input::kTensorDataset;
}

Status check_input(const Request& request) {
  if (devices_of(request.settings) > 1 && in_file_order(request) && input_of(request) != Input::kPreloaded)
    return Error{.message = "torch: with several devices batches are slices of preloaded tensors",
                 .remedy = "set devices = 1, or input = \"preloaded\""};
  if (workers(request) == "0" || input_of(request) != Input::kPreloaded) return Done{};
  return Error{.message = "preloaded tensors have no DataLoader, and it no workers",
               .remedy = "set input = \"dataset\", \"tensor_dataset\" or \"batched_index\", or workers = 0"};
}

std::string input_imports(const Request& request) {
  switch (input_of(request)) {
    case Input::kPreloaded:
      return "";
    case Input::kTensorDataset:
      return "from torch.utils.data import DataLoader, TensorDataset";
    case Input::kDataset:
      return "from torch.utils.data import DataLoader, Dataset";
    case Input::kBatchedIndex:
      break;
  }
  return fmt::format("from torch.utils.data import BatchSampler, DataLoader, {}, TensorDataset",
                     in_file_order(request) ? "SequentialSampler" : "RandomSampler");
}

void print_input_constants(CodeWriter& out, const Request& request) {
  if (workers(request) != "0") out.line("WORKERS = " + workers(request));
}

void print_input(CodeWriter& out, const Request& request, const std::vector<ir::ValueId>& loaded,
                 const std::vector<std::string>& names, const std::vector<std::string>& on_device) {
  Printer(out, request, loaded, names, on_device).print();
}

}  // namespace bakeoff::emit::torch
