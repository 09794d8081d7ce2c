#include "emit/python_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "emit/generation.h"

namespace bakeoff::emit {

bool equalised(const Request& request) { return request.training.equalised(); }

std::string layout_file_name(const std::string& script_name) {
  return script_name.substr(0, script_name.rfind('.')) + ".layout.json";
}

void print_rows_guard(CodeWriter& out, const std::string& array, bool call) {
  out.line(fmt::format("if len({}) < {}BATCH_SIZE:", array, call ? "STEPS_PER_CALL * " : ""));
  const auto then = out.indent();
  out.line(fmt::format("raise ValueError(\"the data has fewer rows than one {}\")", call ? "call" : "batch"));
}

namespace {

bool reads(const Graph& graph, size_t input) {
  const auto ids = graph.forward_inputs();
  return std::find(ids.begin(), ids.end(), static_cast<ir::ValueId>(input)) != ids.end();
}

}  // namespace

Setting loops_setting(const std::string& how) {
  return {
      .name = "loops",
      .values = {"unrolled", "scan"},
      .fallback = "unrolled",
      .doc =
          "how a cell that the model runs once for each place, as a decoder does, is spelled: unrolled: as a "
          "loop of Python, so that all rounds are compiled; scan: as " +
          how + ", so that one round is compiled",
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict}};
}

Status choose_loops(const Request& request, Graph& graph) {
  graph.trace_loops = setting_or(request.settings, "loops", "unrolled") == "scan";
  if (!graph.trace_loops || !precision_of(request).mixed()) return Done{};
  return Error{.message = "loops = scan computes in float32 only, precision is " + precision_of(request).half,
               .remedy = "remove loops or precision"};
}

Status check_loops(const Request& request, const Graph& graph) {
  if (!graph.trace_loops || graph.traced) return Done{};
  return Error{.message = fmt::format(
                   "loops = scan: '{}' has no loop of equal rounds that the framework could carry out",
                   request.workload.name),
               .remedy = "remove loops from this contender"};
}

void print_constants(CodeWriter& out, const Request& request, const Graph& graph,
                     const std::vector<std::string>& more) {
  out.line(fmt::format("BATCH_SIZE = {}", request.training.batch));
  for (const std::string& constant : generation_constants(request.training)) out.line(constant);
  if (!graph.predicts) out.line("LEARNING_RATE = " + python_real(request.training.optimizer.lr));
  for (const std::string& constant : more) out.line(constant);
  for (const double rate : dropout_rates(graph)) {
    out.line(fmt::format("{} = {}", dropout_constant(graph, rate), python_real(rate)));
  }
}

void print_load_data(CodeWriter& out, const Request& request, const Graph& graph) {
  bool last = false;
  std::vector<std::string> names;
  std::vector<size_t> ids;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if ((graph.predicts && !reads(graph, i)) || computed(graph.workload.inputs[i])) continue;
    last = last || graph.plan.values[i] == Order::kChannelsLast;
    names.push_back(graph.inputs[i]);
    ids.push_back(i);
  }
  out.line("def load_data(path):");
  const auto body = out.indent();
  out.line(last ? "\"\"\"The inputs as numpy arrays, pictures in N, H, W, C.\"\"\""
                : "\"\"\"The inputs as numpy arrays.\"\"\"");
  out.line("data = load_file(path)");
  for (const size_t i : ids) {
    const std::string& name = graph.inputs[i];
    const ir::Input& input = graph.workload.inputs[i];
    const bool floats = input.type.dtype == ir::DType::kF32;
    const bool scaled = floats && request.training.input_divisor != 1.0;
    const std::string load = fmt::format("{} = data[\"{}\"].astype", name, input.name);
    const std::string type = floats ? "np.float32" : "np.int32";
    const std::string scale = " / " + python_real(request.training.input_divisor);
    const bool fits = out.column() + load.size() + type.size() + 2 + scale.size() <= 88;
    out.call(load, {type}, scaled && fits ? scale : "");
    if (scaled && !fits) out.line(name + " = " + name + scale);
    if (graph.plan.values[i] == Order::kChannelsLast) {
      const auto perm = conversion_perm(Order::kCanonical, Order::kChannelsLast, input.type.shape.size());
      out.line(fmt::format("{0} = {0}.transpose({1})", name, join(perm, ", ")));
    }
  }
  if (names.size() == 1) return out.line(fmt::format("return ({},)", names[0]));
  const std::string flat = fmt::format("return {}", join(names, ", "));
  if (out.column() + flat.size() <= 88) return out.line(flat);
  print_list(out, "return ", '(', names);
}

void print_load_weights(CodeWriter& out, const Request& request, bool has_layout, bool casts) {
  // The files hold tables of a workload's text in float64.
  const auto& held = request.workload.parameters;
  casts &= std::any_of(held.begin(), held.end(), [](const auto& p) { return !p.values.empty(); });
  const char* cast = casts ? ".astype(np.float32)" : "";
  out.line("def load_weights(path):");
  const auto body = out.indent();
  if (!has_layout) {
    out.line("\"\"\"Initial weights as numpy arrays.\"\"\"");
    out.line(casts ? fmt::format("return {{name: array{} for name, array in load_file(path).items()}}", cast)
                   : "return load_file(path)");
    return;
  }
  out.line("\"\"\"Initial weights (kernels O, I, H, W; linear O, I) as this script stores them.\"\"\"");
  out.call("layout_file = Path(__file__).with_name", {"\"" + layout_file_name(request.script_name) + "\""});
  out.print(
      "layout = json.loads(layout_file.read_text())\n"
      "weights = {}\n"
      "for name, array in load_file(path).items():\n"
      "    entry = layout.get(name, {\"target\": name})\n"
      "    array = array.reshape(entry.get(\"view\", array.shape))\n"
      "    array = array.transpose(entry.get(\"perm\", range(array.ndim)))\n"
      "    array = array.reshape(entry.get(\"reshape\", array.shape))\n");
  out.line(fmt::format("    weights[entry[\"target\"]] = array{}", cast));
  out.line("return weights");
}

std::set<std::string> helper_variants(const Precision& precision, bool predicts) {
  std::set<std::string> all;
  if (precision.mixed()) all = {"mixed", precision.half};
  if (predicts) all.insert("predicts");
  return all;
}

void drop_unused(std::string& text, const std::string& definition, const std::string& use) {
  const size_t at = text.find(definition);
  if (at == std::string::npos) return;
  std::string rest = text;
  rest.erase(at, definition.size());
  if (rest.find(use) == std::string::npos) text = rest;
}

void print_half_inputs(CodeWriter& out, const Graph& graph) {
  for (const ir::ValueId id : graph.forward_inputs()) {
    const auto i = static_cast<size_t>(id);
    if (graph.workload.inputs[i].type.dtype == ir::DType::kF32)
      out.line(fmt::format("{0} = half({0})", graph.inputs[i]));
  }
}

void print_return(CodeWriter& out, const std::vector<std::string>& values, const std::string& tail) {
  const std::string flat = fmt::format("return {}", join(values, ", "));
  const bool fits = out.column() + static_cast<int>((flat + tail).size()) <= 88;
  if (values.size() == 1 && tail.empty()) return out.give_back(values[0]);
  if (values.size() == 1 || (tail.empty() && fits)) return out.line(flat + tail);
  print_list(out, "return ", '(', values, tail);
}

void print_arguments(CodeWriter& out, const Request& request) {
  out.line("here = Path(__file__).resolve().parent");
  out.line("parser = argparse.ArgumentParser(description=__doc__)");
  out.line("parser.add_argument(\"--data\", default=here / \"data.safetensors\")");
  if (equalised(request))
    out.line("parser.add_argument(\"--weights\", default=here / \"weights.safetensors\")");
  out.line("parser.add_argument(\"--steps\", type=int, default=100)");
  if (request.training.predicts()) out.line(kOutArgument);
  out.line("args = parser.parse_args()");
}

std::string load_file_import(bool predicts) {
  return fmt::format("from safetensors.numpy import load_file{}", predicts ? ", save_file" : "");
}

std::vector<std::string> output_names(const ir::Workload& workload) {
  std::vector<std::string> names;
  const std::vector<ir::ValueId> ids = workload.predictions();
  for (const ir::ValueId id : ids) names.push_back(workload.value_name(id));
  return ids.size() == 1 ? std::vector<std::string>() : names;
}

void print_predict_loop(CodeWriter& out, const Request& request, const PredictLoop& loop) {
  const bool words = request.training.generates();
  const std::vector<std::string> names = output_names(request.workload);
  const std::string full = words ? "" : ", np.float32", to_numpy = loop.to_numpy;
  std::string told = words ? fmt::format("first answer {{output{}[0].tolist()}}", to_numpy)
                           : fmt::format("mean output {{{}:.6f}}", loop.mean);
  std::string array = words && !to_numpy.empty() ? "output" + to_numpy
                                                 : fmt::format("np.asarray(output{}{})", to_numpy, full);
  // safetensors writes the bytes of a turned array as they lie.
  const std::string all =
      loop.turn.empty() ? "np.concatenate(outputs)" : "np.ascontiguousarray(np.concatenate(outputs))";
  std::string save =
      fmt::format("    save_file({{\"{}\": {}}}, {}.out)\n", words ? "words" : "output", all, loop.args);
  if (!names.empty()) {
    told = fmt::format("mean {} {{np.asarray(output[0]{}).mean():.6f}}", names[0], to_numpy);
    array = fmt::format("[np.asarray(part{}, np.float32) for part in output]", to_numpy);
    save = fmt::format(
        "    parts = [np.concatenate(parts) for parts in zip(*outputs)]\n"
        "    save_file(dict(zip([\"{}\"], parts)), {}.out)\n",
        join(names, "\", \""), loop.args);
  }
  out.print(R"(arrays = load_data($args$.data)
data = batches(arrays)
steps = len($rows$) // BATCH_SIZE if $args$.out else $args$.steps
outputs = []
for step in range(steps):
    output = $step$
    if step % 10 == 0:
        print(f"batch {step}: $told$")
    if $args$.out:
        outputs.append($array$)
if $args$.out:
$save$)",
            {{"args", loop.args},
             {"rows", loop.rows},
             {"step", loop.step},
             {"told", told},
             {"array", array + loop.turn},
             {"save", save}});
}

Example python_example(const Request& request, const std::string& predict, const std::string& turn,
                       const std::string& to_numpy) {
  if (!request.training.predicts() || !equalised(request)) return {};
  const std::string module = request.script_name.substr(0, request.script_name.rfind('.'));
  CodeWriter out;
  out.print(
      R"("""Checks $module$.py against what the original model predicts.

The exit code is 0 where both agree up to rounding in float32.
"""

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

import $module$ as script

TOLERANCE = $tolerance$  # norm of the difference, relative to that of the expected outputs


def predict(weights, data):
    """The outputs of the first batch of a data file."""
)",
      {{"module", module}, {"tolerance", kExampleTolerance}});
  {
    const auto body = out.indent();
    out.print(predict);
  }
  out.print(R"(

def main():
    folder = Path(__file__).resolve().parent
    expected = load_file(folder / "expected.safetensors")["output"]
    output = predict(folder / "weights.safetensors", folder / "data.safetensors")
)");
  const bool several = !output_names(request.workload).empty();
  out.line(several ? fmt::format("    parts = [np.asarray(part{}) for part in output]", to_numpy)
                   : fmt::format("    output = np.asarray(output{})", to_numpy));
  if (several) out.line("    output = np.concatenate([part.reshape(len(part), -1) for part in parts], 1)");
  if (!turn.empty())
    out.line(fmt::format("    output = output{}  # channels first, as the original has it", turn));
  out.print(R"(    if output.shape != expected.shape:
        sys.exit(f"the outputs are {output.shape}, the original's {expected.shape}")
    norm = max(np.linalg.norm(expected), np.finfo(np.float32).tiny)
    distance = np.linalg.norm(output - expected) / norm
    print(f"outputs of {len(output)} rows differ from the original's by {distance:.1e}")
    return 0 if distance <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
)");
  return {.file = "example.py", .text = out.text(), .commands = "python example.py"};
}

}  // namespace bakeoff::emit
