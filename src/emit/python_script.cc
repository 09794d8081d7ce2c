#include "emit/python_script.h"

#include <fmt/format.h>

namespace bakeoff::emit {

bool equalised(const Request& request) { return request.training.track == ir::Track::kEqualised; }

std::string layout_file_name(const std::string& script_name) {
  return script_name.substr(0, script_name.rfind('.')) + ".layout.json";
}

void print_constants(CodeWriter& out, const Request& request, const Graph& graph,
                     const std::vector<std::string>& more) {
  out.line(fmt::format("BATCH_SIZE = {}", request.training.batch));
  out.line("LEARNING_RATE = " + python_real(request.training.optimizer.lr));
  for (const std::string& constant : more) out.line(constant);
  for (const double rate : dropout_rates(graph)) {
    out.line(fmt::format("{} = {}", dropout_constant(graph, rate), python_real(rate)));
  }
}

void print_load_data(CodeWriter& out, const Request& request, const Graph& graph) {
  bool last = false;
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    last = last || graph.plan.values[i] == Order::kChannelsLast;
    names.push_back(graph.inputs[i]);
  }
  out.line("def load_data(path):");
  const auto body = out.indent();
  out.line(last ? "\"\"\"The inputs as numpy arrays, pictures in N, H, W, C.\"\"\""
                : "\"\"\"The inputs as numpy arrays.\"\"\"");
  out.line("data = load_file(path)");
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Input& input = graph.workload.inputs[i];
    const bool floats = input.type.dtype == ir::DType::kF32;
    const bool scaled = floats && request.training.input_divisor != 1.0;
    const std::string load = fmt::format("{} = data[\"{}\"].astype", names[i], input.name);
    const std::string type = floats ? "np.float32" : "np.int32";
    const std::string scale = " / " + python_real(request.training.input_divisor);
    const bool fits = out.column() + load.size() + type.size() + 2 + scale.size() <= 88;
    out.call(load, {type}, scaled && fits ? scale : "");
    if (scaled && !fits) out.line(names[i] + " = " + names[i] + scale);
    if (graph.plan.values[i] == Order::kChannelsLast) {
      out.line(fmt::format("{} = {}.transpose(0, 2, 3, 1)", names[i], names[i]));
    }
  }
  if (names.size() == 1) return out.line(fmt::format("return ({},)", names[0]));
  const std::string flat = fmt::format("return {}", fmt::join(names, ", "));
  if (out.column() + flat.size() <= 88) return out.line(flat);
  print_list(out, "return ", '(', names);
}

void print_load_weights(CodeWriter& out, const Request& request, bool has_layout) {
  out.line("def load_weights(path):");
  const auto body = out.indent();
  if (!has_layout) {
    out.line("\"\"\"Initial weights as numpy arrays.\"\"\"");
    out.line("return load_file(path)");
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
      "    array = array.reshape(entry.get(\"reshape\", array.shape))\n"
      "    weights[entry[\"target\"]] = array\n"
      "return weights\n");
}

void print_arguments(CodeWriter& out, const Request& request) {
  out.line("here = Path(__file__).resolve().parent");
  out.line("parser = argparse.ArgumentParser(description=__doc__)");
  out.line("parser.add_argument(\"--data\", default=here / \"data.safetensors\")");
  if (equalised(request))
    out.line("parser.add_argument(\"--weights\", default=here / \"weights.safetensors\")");
  out.line("parser.add_argument(\"--steps\", type=int, default=100)");
  out.line("args = parser.parse_args()");
}

}  // namespace bakeoff::emit
