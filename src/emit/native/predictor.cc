// A prediction is asked for in two ways: by a user in a shell, through files, and by a program of the user's own, through
// arrays. Both go through the same members of the network, so that they cannot differ. What a caller of C has to know of
// shapes and errors stands in the source above the functions, since the source is all that he gets.

#include "emit/native/predictor.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/cpp.h"

namespace bakeoff::emit::native {
namespace {

// "rows, 3, 4"
std::string sizes_of(const Port& port) {
  std::string text = "rows";
  for (const int64_t size : port.row) text += ", " + std::to_string(size);
  return text;
}
std::string shape_of(const Port& port) { return "{" + sizes_of(port) + "}"; }

std::string type_of(const Port& port) { return port.whole ? "int32_t" : "float"; }

// The manual of the functions below it.
void print_manual(CodeWriter& out, const ir::Training& training, const std::vector<Port>& inputs,
                  const std::vector<Port>& outputs, const std::string& predict) {
  out.print(R"(// The same for programs that link this one, compiled with -DBAKEOFF_LIBRARY:
//
//   int bakeoff_load(const char* weights);  // a file or folder of weights, before anything else
//   $predict$;
//   const char* bakeoff_error(void);        // what the last call that failed has to say
//
// Both give 0, or 1 where they cannot. Arrays are the caller's, row after row, axes in this order:
//
)",
            {{"predict", predict}});
  const std::string raw =
      training.input_divisor == 1 ? "" : fmt::format(", divided by {} here", training.input_divisor);
  for (const Port& port : inputs)
    out.line(fmt::format("//   {}: {} [{}], read{}", port.variable, type_of(port), sizes_of(port),
                         port.whole ? "" : raw));
  for (const Port& port : outputs)
    out.line(fmt::format("//   {}: {} [{}], written", port.variable, type_of(port), sizes_of(port)));
  out.print(R"(//
// Any number of rows from 1 on; they are worked off $batch$ at a time. There is one network in a
// process: calls must not overlap.
)",
            {{"batch", std::to_string(training.batch)}});
}

void print_library(CodeWriter& out, const ir::Training& training, const std::vector<Port>& inputs,
                   const std::vector<Port>& outputs) {
  std::vector<std::string> parameters = {"int64_t rows"};
  for (const Port& port : inputs)
    parameters.push_back(fmt::format("const {}* {}", type_of(port), port.variable));
  for (const Port& port : outputs) parameters.push_back(fmt::format("{}* {}", type_of(port), port.variable));
  const std::string predict = fmt::format("int bakeoff_predict({})", join(parameters, ", "));
  print_manual(out, training, inputs, outputs, predict);
  out.print(R"(struct Library {
  Network network;
  bool loaded = false;
  std::string error;
};

static Library& library() {
  static Library only;
  return only;
}

static int failed(const std::exception& error) {
  library().error = error.what();
  return 1;
}

extern "C" const char* bakeoff_error(void) {
  return library().error.c_str();
}

extern "C" int bakeoff_load(const char* weights) try {
  library().network.load_weights(weights);
  library().loaded = true;
  return 0;
} catch (const std::exception& error) {
  return failed(error);
}

)");
  cpp::call(out, "extern \"C\" int bakeoff_predict", parameters, " try {");
  {
    const auto body = out.indent();
    out.line("if (!library().loaded) refuse(\"no weights are loaded\", \"call bakeoff_load first\");");
    out.line("if (rows < 1) refuse(\"there is no row\", \"give one or more\");");
    out.line("std::map<std::string, Tensor> data;");
    for (const Port& port : inputs)
      cpp::statement(out, fmt::format("data[{}] = tensor_at({}, {});", cpp::quote(port.name), port.variable,
                                      shape_of(port)));
    out.line("library().network.set_data(std::move(data), \"bakeoff_predict\");");
    out.line("const std::map<std::string, Tensor> all = library().network.predict();");
    for (const Port& port : outputs) {
      out.line(fmt::format("const auto {}_values = numbers<{}>(all, {});", port.variable, type_of(port),
                           cpp::quote(port.name)));
      out.line(fmt::format("std::copy({0}_values.begin(), {0}_values.end(), {0});", port.variable));
    }
    out.line("return 0;");
  }
  out.print("} catch (const std::exception& error) {\n  return failed(error);\n}\n");
}

void print_main(CodeWriter& out, const Port& first) {
  print_start(out);
  out.print(R"(  if (!given.at("--out").empty()) {
    save_tensors(given.at("--out"), network.predict());
    return 0;
  }
  for (int64_t step = 0; step < steps; ++step) {
    network.next_batch();
    network.forward();
    const double mean = mean_of(network.outputs().at(network.output_names[0]));
    if (step % 10 == 0) std::printf("batch %d: mean $name$ %.6f\n", static_cast<int>(step), mean);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
)",
            {{"name", first.name}});
}

}  // namespace

void print_start(CodeWriter& out) {
  out.print(R"(int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto given = options(argc, argv,
                             {{"--data", "data.safetensors"},
                              {"--weights", "weights.safetensors"},
                              {"--steps", "100"},
                              {"--threads", "0"},
                              {"--tuned", ""},
                              {"--out", ""}});
  const int64_t steps = whole_number(given, "--steps"), threads = whole_number(given, "--threads");
  static Network network(threads > 0 ? threads : default_threads());
  if (!given.at("--tuned").empty()) return network.print_constants(), 0;
  network.load_weights(given.at("--weights"));
  network.load_data(given.at("--data"));
)");
}

void print_outputs(CodeWriter& out, const Graph& graph, const std::vector<Port>& outputs) {
  out.line("// What is predicted of these rows, axes as the model has them.");
  out.line("std::map<std::string, Tensor> outputs() const {");
  std::vector<std::string> all;
  for (size_t i = 0; i < outputs.size(); ++i)
    all.push_back(fmt::format("{{{}, tensor_at({}, {})}}", cpp::quote(outputs[i].name),
                              graph.values[static_cast<size_t>(graph.outputs[i])].name,
                              shape_of(outputs[i])));
  out.print("  return {$all$};\n}\n\n", {{"all", join(all, ", ")}});
}

void print_prediction(CodeWriter& out, const std::vector<Port>& outputs) {
  std::vector<std::string> names;
  for (const Port& port : outputs) names.push_back(cpp::quote(port.name));
  cpp::statement(out,
                 fmt::format("const std::vector<std::string> output_names = {{{}}};", join(names, ", ")));
  out.print(R"(
// Of all rows of the data, batch by batch.
std::map<std::string, Tensor> predict() {
  std::map<std::string, Tensor> all;
  for (int64_t first = 0; first < data_rows; first += kBatch) {
    set_batch(first, std::min(kBatch, data_rows - first));
    forward();
    append_rows(all, outputs());
  }
  return all;
}
)");
}

void print_predictor(CodeWriter& out, const ir::Training& training, const std::vector<Port>& inputs,
                     const std::vector<Port>& outputs) {
  out.line("#ifdef BAKEOFF_LIBRARY");
  print_library(out, training, inputs, outputs);
  out.print("#else\n");
  print_main(out, outputs[0]);
  out.print("#endif\n");
}

}  // namespace bakeoff::emit::native
