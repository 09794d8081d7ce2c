// How a program reads: what it needs of the helpers, then one struct that is the network. Its members are pointers into
// three arrays (parameters, gradients, arena), made once; its functions are the steps, one forwards and one backwards
// each, and what calls them in order. Shapes are constants everywhere; the number of rows of a batch alone is not, so
// that a proof may take fewer.

#include "emit/native/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/texts.h"
#include "emit/cpp.h"
#include "emit/helpers.h"
#include "emit/native/make_graph.h"
#include "emit/native/ops.h"
#include "emit/native/predictor.h"
#include "emit/native/update.h"
#include "emit/updates.h"
#include "ir/bounds.h"
#include "ir/dropout.h"
#include "ir/op_table.h"

namespace bakeoff::embedded {
const std::vector<File>& native_helpers();
}

namespace bakeoff::emit::native {
namespace {

const Helpers& helpers() {
  static const Helpers all(embedded::native_helpers());
  return all;
}

// Everything that a value must not be called, among the members of the network or as an argument of a function of C.
std::set<std::string> reserved(bool in_network = true) {
  std::set<std::string> all = cpp::cpp_words();
  all.merge(helpers().names());
  all.merge(words("std Tensor Network rows data all library failed error int32_t int64_t"));
  if (!in_network) return all;
  all.merge(words(
      "std Real kBatch kLearningRate Network parameters gradients arena whole_arena rows table first_row data_rows i j k l m "
      "n p t sum share step updates main argc argv forward backward update train_step predict_step restart load_data "
      "load_weights set_batch next_batch set_data inputs outputs output_names predict batch network library Library failed output output_shape dropout_key dropout_rate dropping masks learning_rate first "
      "second averages factor scale norm square move rate c1 c2 g decay kTrained kDecayed kAll NULL EOF stdin stdout stderr errno assert linux unix INFINITY "
      "NAN M_PI int32_t int64_t uint64_t size_t"));
  return all;
}

class Program {
 public:
  Program(const Request& request, const std::vector<ir::Type>& types)
      : request_(request),
        workload_(request.workload),
        names_(reserved()),
        arguments_(reserved(/*in_network=*/false)),
        graph_(make_graph(request, types, names_)),
        update_(plan_update(graph_)) {
    for (size_t i = 0; i < workload_.inputs.size(); ++i) {
      const std::string& name = graph_.values[i].name;
      data_.push_back(names_.name("data " + name, name + "_data"));
      if (used(static_cast<int>(i))) loaded_.push_back(i);
    }
  }

  std::string text() {
    header();
    const size_t head = out_.text().size();
    network();
    main();
    std::string text = out_.text();
    return text.insert(head, helpers().used_by(text.substr(head)));
  }

 private:
  bool trains() const { return graph_.trains(); }
  bool drops() const { return trains() && ir::drops(workload_); }
  bool used(int value) const {
    return std::ranges::any_of(graph_.steps,
                               [&](const Step& s) { return std::ranges::count(s.inputs, value) > 0; });
  }
  const Value& value(int id) const { return graph_.values[static_cast<size_t>(id)]; }

  void header();
  void network();
  void print_parameters();
  void print_arena();
  void print_inputs();
  void print_table();
  void load_data();
  void set_batch();
  void print_step(const Step& step);
  void print_way();
  void print_output();
  std::vector<Port> ports(bool outputs);
  std::string tensor_text(int id) const;
  void print_dropout();
  void train_step();
  void main();

  const Request& request_;
  const ir::Workload& workload_;
  Namer names_;
  Namer arguments_;  // of functions of C
  Graph graph_;
  Update update_;
  std::vector<size_t> loaded_;     // inputs that something reads
  std::vector<std::string> data_;  // by input: the vector that holds it
  CodeWriter out_{2};
};

void Program::header() {
  const std::string stem = request_.script_name.substr(0, request_.script_name.rfind('.'));
  out_.print(R"(// $what$ $name$: one program, for which nothing but a C++20 compiler is needed.
//
//   g++ -std=c++20 -O3 -march=native $stem$.cc -o $stem$
//   ./$stem$ --data data.safetensors --weights weights.safetensors $more$

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#pragma GCC diagnostic ignored "-Wunknown-pragmas"  // ivdep is g++'s own

using Real = float;  // everything is computed in it

constexpr int64_t kBatch = $batch$;
)",
             {{"what", trains() ? "Trains" : "Predicts with"},
              {"more", trains() ? "--steps 100" : "--out outputs.safetensors"},
              {"name", workload_.name},
              {"stem", stem},
              {"batch", std::to_string(request_.training.batch)}});
  if (trains()) print_constants(out_, request_.training.optimizer);
  out_.blank();
}

void Program::network() {
  out_.line("struct Network {");
  {
    const auto body = out_.indent();
    print_parameters();
    print_arena();
    print_inputs();
    print_table();
    out_.print(R"(void load_weights(const std::string& path) {
  load_parameters(path, table, parameters);
}

)");
    load_data();
    set_batch();
    if (drops()) print_dropout();
    for (const Step& step : graph_.steps) print_step(step);
    print_way();
    if (trains()) {
      print_output();
      print_update(out_, request_.training.optimizer, update_);
      train_step();
    } else {
      print_outputs(out_, graph_, ports(true));
    }
  }
  out_.line("};");
  out_.blank();
}

void Program::print_parameters() {
  out_.line(trains() ? "// Parameters, those that are trained first, and their gradients."
                     : "// Parameters.");
  if (trains()) out_.line(fmt::format("static constexpr int64_t kTrained = {};", update_.trained));
  out_.line(fmt::format("Real* const parameters = allocate<Real>({});", update_.all));
  if (trains()) out_.line("Real* const gradients = allocate<Real>(kTrained);");
  if (trains()) print_state(out_, request_.training.optimizer);
  for (const int id : update_.order) {
    const auto p = static_cast<size_t>(id);
    out_.line(fmt::format("Real* const {} = parameters + {};  // {}", graph_.parameters[p], update_.at[p],
                          ir::to_text(workload_.parameters[p].shape)));
  }
  for (const int id : update_.order) {
    const auto p = static_cast<size_t>(id);
    if (graph_.gradients[p].empty()) continue;
    out_.line(fmt::format("Real* const {} = gradients + {};", graph_.gradients[p], update_.at[p]));
  }
  out_.blank();
}

void Program::print_arena() {
  out_.line("// Values of a batch. Two that are never needed at once may share their place.");
  if (graph_.arena > 0) out_.line(fmt::format("Real* const arena = allocate<Real>({});", graph_.arena));
  if (graph_.whole_arena > 0)
    out_.line(fmt::format("int32_t* const whole_arena = allocate<int32_t>({});", graph_.whole_arena));
  for (const Place& place : graph_.places) {
    out_.line(fmt::format("{}* const {} = {} + {};", place.whole ? "int32_t" : "Real", place.name,
                          place.whole ? "whole_arena" : "arena", place.at));
  }
  out_.blank();
}

void Program::print_inputs() {
  out_.line("// The data, and the rows of the present batch.");
  for (const size_t i : loaded_) {
    const Value& v = value(static_cast<int>(i));
    out_.line(fmt::format("std::vector<{}> {};", v.whole() ? "int32_t" : "Real", data_[i]));
    out_.line(fmt::format("const {}* {} = nullptr;", v.whole() ? "int32_t" : "Real", v.name));
  }
  out_.line("int64_t data_rows = 0, first_row = 0, rows = 0;");
  if (drops()) out_.line("bool dropping = true;  // false: dropout passes everything on");
  if (drops()) out_.line("uint64_t masks = 0;    // drawn so far");
  out_.blank();
}

void Program::print_table() {
  out_.line(
      "// Parameters as files have them: name, shape, and the shape and order of axes in which they are held.");
  out_.line("const std::vector<Parameter> table = {");
  for (const int id : update_.order) {
    const auto p = static_cast<size_t>(id);
    const ir::Parameter& parameter = workload_.parameters[p];
    const ParamLayout& layout = graph_.layout.params[p];
    const ir::Shape& view = layout.view.empty() && !layout.perm.empty() ? parameter.shape : layout.view;
    cpp::statement(out_,
                   fmt::format("    {{{}, {}, {}, {}, {}, {}, {}}},", cpp::quote(parameter.name),
                               cpp::braces(parameter.shape), cpp::braces(view), cpp::braces(layout.perm),
                               update_.at[p], ir::elements(parameter.shape), ir::trainable(parameter)));
  }
  out_.line("};");
  out_.blank();
}

// ", {{0, 10, 0}}": what the integers of an input may be; empty: anything.
std::string ranges_of(const ir::Workload& workload, ir::ValueId input) {
  if (workload.inputs[static_cast<size_t>(input)].type.dtype == ir::DType::kF32) return "";
  ir::RowBounds bounds = ir::row_bounds(workload, input);
  if (!std::ranges::all_of(bounds, [](const auto& bound) { return bound.has_value(); })) return "";
  if (std::ranges::all_of(bounds, [&](const auto& bound) { return bound == bounds[0]; })) bounds.resize(1);
  std::vector<std::string> all;
  for (const auto& bound : bounds)
    all.push_back(
        fmt::format("{{{}, {}, {}}}", bound->begin, bound->end, bound->ignored.value_or(bound->begin)));
  return fmt::format(", {{{}}}", join(all, ", "));
}

void Program::load_data() {
  out_.line("// The inputs as files have them: name, sizes of a row.");
  out_.line("const std::vector<Input> inputs = {");
  for (const size_t i : loaded_) {
    const ir::Input& input = workload_.inputs[i];
    const ir::Shape row(input.type.shape.begin() + 1, input.type.shape.end());
    cpp::statement(out_, fmt::format("    {{{}, {}{}}},", cpp::quote(input.name), cpp::braces(row),
                                     ranges_of(workload_, static_cast<int>(i))));
  }
  out_.line("};");
  out_.blank();
  out_.line("void load_data(const std::string& path) {");
  out_.line("  set_data(load_inputs(path, inputs), path);");
  if (trains())
    out_.print(R"(  if (data_rows < kBatch)
    refuse("'" + path + "' has " + std::to_string(data_rows) + " rows, fewer than one batch",
           "give at least " + std::to_string(kBatch));
)");
  out_.print(R"(}

// `from`: where the tensors come from, for messages.
void set_data(const std::map<std::string, Tensor>& tensors, const std::string& from) {
)");
  {
    const auto body = out_.indent();
    out_.line("check_inputs(from, tensors, inputs);");
    out_.line("data_rows = tensors.at(inputs[0].name).shape[0];");
    out_.line("first_row = 0;");
    for (const size_t i : loaded_) {
      const ir::Input& input = workload_.inputs[i];
      const Value& v = value(static_cast<int>(i));
      const std::string name = cpp::quote(input.name);
      std::string read = v.whole() ? fmt::format("numbers<int32_t>(tensors, {})", name)
                                   : fmt::format("scaled(tensors, {}, {})", name,
                                                 python_real(request_.training.input_divisor));
      if (v.order == Order::kChannelsLast) {
        std::string sizes = "data_rows";
        for (size_t axis = 1; axis < input.type.shape.size(); ++axis)
          sizes += ", " + std::to_string(input.type.shape[axis]);
        read = fmt::format("turned({}, {{{}}}, {})", read, sizes,
                           cpp::braces(conversion_perm(Order::kCanonical, v.order, input.type.shape.size())));
      }
      cpp::statement(out_, fmt::format("{} = {};", data_[i], read));
    }
  }
  out_.line("}");
  out_.blank();
}

void Program::set_batch() {
  out_.line("void set_batch(int64_t first, int64_t count) {");
  {
    const auto body = out_.indent();
    out_.line("rows = count;");
    for (const size_t i : loaded_) {
      const Value& v = value(static_cast<int>(i));
      const std::string row =
          ir::elements(v.sizes, 1) == 1 ? "first" : fmt::format("first * {}", ir::elements(v.sizes, 1));
      out_.line(fmt::format("{} = {}.data() + {};", v.name, data_[i], row));
    }
  }
  out_.print(R"(}

// In the order of the file; a partial last batch is left out.
void next_batch() {
  if (first_row + kBatch > data_rows) first_row = 0;
  set_batch(first_row, std::min(kBatch, data_rows));
  first_row += kBatch;
}

)");
  out_.line("// The inputs of the present batch, axes as files have them.");
  out_.line("std::vector<Tensor> batch() const {");
  std::vector<std::string> all;
  for (const size_t i : loaded_) all.push_back(tensor_text(static_cast<int>(i)));
  for (size_t i = 0; i < all.size(); ++i)
    cpp::statement(out_, fmt::format("  {}{}{}", i == 0 ? "return {" : "        ", all[i],
                                     i + 1 < all.size() ? "," : "};"));
  out_.line("}");
  out_.blank();
}

// "tensor_of(std::vector<Real>(x, x + rows * 9), {rows, 9})", with its axes in canonical order.
std::string Program::tensor_text(int id) const {
  const Value& v = value(id);
  std::string text = fmt::format("std::vector<{0}>({1}, {1} + {2})", v.whole() ? "int32_t" : "Real", v.name,
                                 count_of(v.sizes).text());
  const ir::Shape& shape = graph_.types[static_cast<size_t>(id)].shape;
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(size == ir::kBatch ? "rows" : std::to_string(size));
  if (v.order == Order::kChannelsLast)
    text = fmt::format("turned({}, {{{}}}, {}, true)", text, join(sizes, ", "),
                       cpp::braces(conversion_perm(Order::kCanonical, v.order, shape.size())));
  return fmt::format("tensor_of({}, {{{}}})", text, join(sizes, ", "));
}

void Program::print_dropout() {
  out_.print(R"(// Stands for seed, step and layer in the hash that draws a mask.
uint64_t dropout_key(uint64_t layer) const {
  return mix(layer ^ mix(masks ^ mix($seed$)));
}

double dropout_rate(double rate) const {
  return dropping ? rate : 0;
}

)",
             {{"seed", std::to_string(request_.training.seed)}});
}

void Program::print_step(const Step& step) {
  const Call c{graph_, step, out_};
  const OpRow& row = step.node < 0 ? turn_row() : *find_row(graph_.node(step).op);
  std::vector<std::string> read;
  for (const int id : step.inputs) read.push_back(value(id).name);
  const std::string op = step.node < 0 ? "axes of" : ir::info(graph_.node(step).op).name;
  std::string layer;
  if (step.node >= 0 && !graph_.node(step).params.empty())
    layer =
        layer_of(workload_.parameters[static_cast<size_t>(graph_.node(step).params[0].param)].name) + ": ";
  out_.line(fmt::format("// {}{} = {}({}), {}.", layer, c.y(), op, join(read, ", "),
                        ir::to_text(c.result().sizes)));
  out_.line(fmt::format("void {}() {{", step.forward));
  {
    const auto body = out_.indent();
    row.forward(c);
  }
  out_.line("}");
  out_.blank();
  if (!step.backward) return;
  out_.line(fmt::format("void {}() {{", step.way_back));
  {
    const auto body = out_.indent();
    std::set<std::string> begun;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int id = step.inputs[i];
      const bool later =
          std::any_of(&step + 1, std::as_const(graph_.steps).data() + graph_.steps.size(),
                      [&](const Step& s) { return s.backward && std::ranges::count(s.inputs, id) > 0; });
      if (c.wants(i) && !later && begun.insert(c.dx(i)).second) fill(out_, c.dx(i), count_of(c.in(i).sizes));
    }
    row.backward(c);
  }
  out_.line("}");
  out_.blank();
}

void Program::print_way() {
  out_.line(trains() ? "// All steps in order; gives the loss." : "// All steps in order.");
  out_.line(trains() ? "Real forward() {" : "void forward() {");
  for (const Step& step : graph_.steps) out_.line(fmt::format("  {}();", step.forward));
  if (trains()) out_.line(fmt::format("  return {}[0];", value(workload_.loss()).name));
  out_.line("}");
  out_.blank();
  if (!trains()) return;
  const Value& loss = value(workload_.loss());
  out_.line("void backward() {");
  out_.line("  std::fill(gradients, gradients + kTrained, Real{0});");
  if (!loss.gradient.empty()) out_.line(fmt::format("  {}[0] = 1;", loss.gradient));
  for (size_t s = graph_.steps.size(); s-- > 0;) {
    if (graph_.steps[s].backward) out_.line(fmt::format("  {}();", graph_.steps[s].way_back));
  }
  out_.line("}");
  out_.blank();
}

void Program::print_output() {
  out_.line("// The prediction of the present batch, axes as the model has them.");
  out_.line("Tensor output() const {");
  {
    const auto body = out_.indent();
    cpp::statement(out_, fmt::format("return {};", tensor_text(workload_.prediction())));
  }
  out_.line("}");
  out_.blank();
}

void Program::train_step() {
  out_.line("// One step on the present batch: its loss, before the update.");
  out_.line("Real train_step() {");
  if (drops()) out_.line("  ++masks;");
  out_.print("  const Real seen = forward();\n  backward();\n  update();\n  return seen;\n}\n");
}

std::vector<Port> Program::ports(bool outputs) {
  std::vector<Port> all;
  const std::vector<ir::ValueId> predicted = workload_.predictions();
  for (size_t i = 0; i < (outputs ? predicted.size() : loaded_.size()); ++i) {
    const ir::ValueId id = outputs ? predicted[i] : static_cast<ir::ValueId>(loaded_[i]);
    const ir::Type& type = graph_.types[static_cast<size_t>(id)];
    const std::string& own = workload_.value_name(id);
    all.push_back({.name = outputs && predicted.size() == 1 ? "output" : own,
                   .variable = arguments_.name(own, identifier(own)),
                   .whole = type.dtype != ir::DType::kF32,
                   .row = ir::Shape(type.shape.begin() + 1, type.shape.end())});
  }
  return all;
}

void Program::main() {
  if (!trains()) return print_predictor(out_, request_.training, ports(false), ports(true));
  out_.print(R"(int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto given = options(argc, argv,
                             {{"--data", "data.safetensors"},
                              {"--weights", "weights.safetensors"},
                              {"--steps", "100"},
                              {"--out", ""}});
  const int64_t steps = whole_number(given, "--steps");
  static Network network;
  network.load_weights(given.at("--weights"));
  network.load_data(given.at("--data"));
  std::signal(SIGINT, interrupt);
  for (int64_t step = 0; step < steps && interrupted() == 0; ++step) {
    network.next_batch();
    const double loss = static_cast<double>(network.train_step());
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", static_cast<int>(step), loss);
  }
  const std::string out = given.at("--out");
  if (!out.empty()) save_parameters(out, network.table, network.parameters);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
)");
}

}  // namespace

std::string program_text(const Request& request, const std::vector<ir::Type>& types) {
  return Program(request, types).text();
}

}  // namespace bakeoff::emit::native
