// ONNX Runtime reads a file, not a script. The script builds that file as its exporter would have written it,
// node by node with onnx.helper, and runs it: a reader sees the graph that is raced, and the weights stay in
// the same safetensors file as everybody's. Session options are printed from the contender's settings; what
// is timed is the session's run alone, with inputs and outputs bound to memory where the setting asks for it.

#include "emit/onnxruntime/script.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/generation.h"
#include "emit/helpers.h"
#include "emit/onnxruntime/graph_printer.h"
#include "emit/python_script.h"

namespace bakeoff::embedded {
const std::vector<File>& onnxruntime_helpers();
}

namespace bakeoff::emit::onnxruntime {
namespace {

class Script {
 public:
  Script(const Request& request, const Graph& graph) : request_(request), graph_(graph) {}

  std::string text() {
    header();
    print_load_data(out_, request_, graph_);
    out_.blank(2);
    print_load_weights(out_, request_, false);
    out_.blank(2);
    batches();
    const size_t head = out_.text().size();
    build_model();
    make_session();
    generates() ? generate() : predict_step();
    print_main();
    static const Helpers helpers(embedded::onnxruntime_helpers());
    std::string text = out_.text();
    return text.insert(head, helpers.used_by(text.substr(head)));
  }

 private:
  const std::string& setting(const char* name) const { return request_.settings.at(name); }
  bool generates() const { return request_.training.generates(); }
  bool keeps() const { return generates() && keeps_words(request_.settings); }
  bool grows() const { return keeps() && cache_grows(request_.settings); }
  bool binds() const { return !generates() && setting("io_binding") == "true"; }
  bool on_cpu() const { return setting("provider") == "cpu"; }

  void header() {
    out_.line(fmt::format("\"\"\"{} with {} in ONNX Runtime.\"\"\"", generates() ? "Generates" : "Predicts",
                          request_.workload.name));
    out_.print(
        "\nimport argparse\nimport itertools\nfrom pathlib import Path\n\n"
        "import numpy as np\nimport onnxruntime as ort\nfrom onnx import helper, numpy_helper\n"
        "from safetensors.numpy import load_file, save_file\n\n");
    print_constants(out_, request_, graph_, {fmt::format("OPSET = {}", kOpset)});
    out_.line(fmt::format("PROVIDER = \"{}\"", provider(request_.settings)));
    if (binds() || keeps()) out_.line(fmt::format("DEVICE = \"{}\"", on_cpu() ? "cpu" : "cuda"));
    out_.blank(2);
  }

  void batches() {
    out_.line("def batches(arrays):");
    {
      const auto body = out_.indent();
      out_.line(fmt::format("\"\"\"Endless batches{}, in file order; rows left over are dropped.\"\"\"",
                            binds() ? " on the device" : ""));
      print_rows_guard(out_, "arrays[0]");
      if (binds()) {
        out_.print(
            "starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)\n"
            "parts = [[a[i : i + BATCH_SIZE] for a in arrays] for i in starts]\n"
            "to_device = ort.OrtValue.ortvalue_from_numpy\n"
            "ready = [tuple(to_device(array, DEVICE, 0) for array in part) for part in parts]\n"
            "return itertools.cycle(ready)\n");
      } else {
        out_.print(
            "starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)\n"
            "ready = [tuple(a[i : i + BATCH_SIZE] for a in arrays) for i in starts]\n"
            "return itertools.cycle(ready)\n");
      }
    }
    out_.blank(2);
  }

  // "make_tensor_value_info" of a value with the batch size N, of L words.
  void value_info(const std::string& head, const std::string& name, const ir::Type& type) {
    std::vector<std::string> sizes;
    for (const int64_t size : type.shape)
      sizes.push_back(size == ir::kBatch ? "\"N\"" : size == ir::kSteps ? "\"L\"" : std::to_string(size));
    out_.call(head + "value",
              {"\"" + name + "\"", type.dtype == ir::DType::kI32 ? "np.int32" : "real",
               fmt::format("[{}]", join(sizes, ", "))},
              head.empty() ? "," : "");
  }

  void build_model() {
    out_.line("def build_model(weights, real=np.float32):");
    {
      const auto body = out_.indent();
      out_.print(R"("""The graph with its weights; `real`: the type of floating-point numbers."""
constants = {name: array.astype(real) for name, array in weights.items()}
nodes = []

def add(op, inputs, output, **attributes):
    nodes.append(helper.make_node(op, inputs, [output], output, **attributes))

def value(name, dtype, shape):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, shape)

)");
      GraphPrinter printer(out_, graph_, grows());
      outputs_ = printer.print();
      caches_ = printer.caches();
      for (const ir::ValueId id : graph_.forward_inputs()) inputs_.push_back(printer.name(id));
      out_.blank();
      graph_inputs();
      graph_outputs();
      out_.print("read = {name for node in nodes for name in node.input}\n");
      out_.print("arrays = [(name, array) for name, array in constants.items() if name in read]\n");
      out_.print("initial = [numpy_helper.from_array(array, name) for name, array in arrays]\n");
      out_.call("graph = helper.make_graph", {"nodes", "\"" + request_.workload.name + "\"", "inputs",
                                              listed() ? "outputs" : "[output]", "initial"});
      out_.line("opset = helper.make_opsetid(\"\", OPSET)");
      out_.line(
          fmt::format("return helper.make_model(graph, opset_imports=[opset], ir_version={})", kIrVersion));
    }
    out_.blank(2);
  }

  bool one() const { return outputs_.size() == 1; }
  bool listed() const { return !one() || !caches_.empty(); }

  void cache_info(ir::ParamId id, const std::string& name, const char* places) {
    const ir::Shape& s = request_.workload.parameters[static_cast<size_t>(id)].shape;  // N,T,heads,D
    const std::string held = grows() ? fmt::format("\"{}\"", places) : std::to_string(s[1]);
    out_.call("value", {"\"" + name + "\"", "real", fmt::format("[\"N\", {}, {}, {}]", s[2], held, s[3])},
              ",");
  }

  void graph_outputs() {
    const auto ids = graph_.outputs();
    const auto type = [&](size_t i) { return graph_.types[static_cast<size_t>(ids[i])]; };
    if (!listed()) return value_info("output = ", outputs_[0], type(0));
    out_.line("outputs = [");
    {
      const auto inside = out_.indent();
      for (size_t i = 0; i < ids.size(); ++i) value_info("", outputs_[i], type(i));
      for (const auto& [id, next] : caches_) cache_info(id, next, "read");
    }
    out_.line("]");
  }

  void graph_inputs() {
    out_.line("inputs = [");
    {
      const auto inside = out_.indent();
      const auto ids = graph_.forward_inputs();
      for (size_t i = 0; i < ids.size(); ++i) {
        value_info("", inputs_[i], request_.workload.inputs[static_cast<size_t>(ids[i])].type);
      }
      for (const auto& [id, next] : caches_)
        cache_info(id, request_.workload.parameters[static_cast<size_t>(id)].name, "past");
    }
    out_.line("]");
  }

  void make_session() {
    const std::string level = setting("optimization");
    out_.print(R"(def make_session(model, threads=0):
    """`threads`: 0 is one for each core."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.$level$
    options.intra_op_num_threads = threads
)",
               {{"level", level == "disabled"   ? "ORT_DISABLE_ALL"
                          : level == "basic"    ? "ORT_ENABLE_BASIC"
                          : level == "extended" ? "ORT_ENABLE_EXTENDED"
                                                : "ORT_ENABLE_ALL"}});
    const auto body = out_.indent();
    const bool cuda = setting("provider") == "cuda";
    out_.line(cuda ? "providers = [(PROVIDER, {\"use_tf32\": 0})]" : "providers = [PROVIDER]");
    out_.line("return ort.InferenceSession(model.SerializeToString(), options, providers)");
    out_.blank(2);
  }

  void predict_step() {
    std::vector<std::string> parameters = graph_.forward_names();
    parameters.insert(parameters.begin(), "session");
    out_.call("def predict_step", parameters, ":");
    {
      const auto body = out_.indent();
      binds() ? bound_step() : plain_step();
    }
    out_.blank(2);
  }

  void plain_step() {
    std::vector<std::string> entries;
    const auto names = graph_.forward_names();
    for (size_t i = 0; i < names.size(); ++i)
      entries.push_back(fmt::format("\"{}\": {}", inputs_[i], names[i]));
    const std::string flat = fmt::format("{{{}}}", join(entries, ", "));
    const std::string run = fmt::format("return session.run({}, ", list_of(outputs_));
    const std::string line = run + flat + (one() ? ")[0]" : ")");
    if (out_.column() + line.size() <= 88) return out_.line(line);
    print_list(out_, "feed = ", '{', entries);
    out_.line(run + (one() ? "feed)[0]" : "feed)"));
  }

  void bound_step() {
    out_.line("binding = session.io_binding()");
    const auto names = graph_.forward_names();
    for (size_t i = 0; i < names.size(); ++i)
      out_.call("binding.bind_ortvalue_input", {"\"" + inputs_[i] + "\"", names[i]});
    for (const std::string& name : outputs_) out_.call("binding.bind_output", {"\"" + name + "\"", "DEVICE"});
    out_.line("session.run_with_iobinding(binding)");
    out_.line(one() ? "return binding.get_outputs()[0]" : "return binding.get_outputs()");
  }

  void generate() {
    out_.line("def make_decoder(session):");
    out_.line(fmt::format("    return {}Decoder(session, BATCH_SIZE{})",
                          grows()   ? "Growing"
                          : keeps() ? "Cached"
                                    : "",
                          keeps() ? ", DEVICE" : ""));
    out_.blank(2);
    print_generate(out_, {.model = "decoder",
                          .call = "logits = decoder.step(words, first)",
                          .joined = "np.concatenate(parts, axis=1)",
                          .likeliest = "logits.argmax(-1).astype(np.int32)"});
  }

  void print_main() {
    out_.line("def main():");
    {
      const auto body = out_.indent();
      print_arguments(out_, request_);
      out_.blank();
      out_.line("session = make_session(build_model(load_weights(args.weights)))");
      if (generates()) out_.line("decoder = make_decoder(session)");
      const std::string to_numpy = binds() ? ".numpy()" : "";
      print_predict_loop(
          out_, request_,
          {.step = fmt::format("predict_step({}, *next(data))", generates() ? "decoder" : "session"),
           .mean = fmt::format("output{}.mean()", to_numpy),
           .to_numpy = to_numpy});
    }
    out_.print("\n\nif __name__ == \"__main__\":\n    main()\n");
  }

  CodeWriter out_;
  const Request& request_;
  const Graph& graph_;
  std::vector<std::string> inputs_;  // of the ONNX graph, parallel to forward_inputs()
  std::vector<std::string> outputs_;
  std::vector<std::pair<ir::ParamId, std::string>> caches_;
};

}  // namespace

std::string script_text(const Request& request, const Graph& graph) { return Script(request, graph).text(); }

std::string provider(const Settings& settings) {
  const std::string& name = settings.at("provider");
  return name == "cuda"       ? "CUDAExecutionProvider"
         : name == "tensorrt" ? "TensorrtExecutionProvider"
                              : "CPUExecutionProvider";
}

}  // namespace bakeoff::emit::onnxruntime
