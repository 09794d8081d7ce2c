// How a program reads: the kernels and helpers that it needs, then three structs. Memory: what all threads see, made once,
// pointers with the names of the model. Rows: the steps, one function forwards and one backwards each, for some rows of a
// batch; every thread has one, which it moves from rows to rows. Network: data, optimizer, threads, and the order of it
// all (schedule.h). Shapes are constants everywhere; the number of rows of a batch alone is not, so that a proof may take
// fewer.

#include "emit/native/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/texts.h"
#include "emit/cpp.h"
#include "emit/helpers.h"
#include "emit/native/finish.h"
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
const std::vector<File>& native_kernels();
}  // namespace bakeoff::embedded

namespace bakeoff::emit::native {
namespace {

const Helpers& helpers() {
  static const Helpers all(embedded::native_helpers());
  return all;
}

// The kernels that `script` calls, as one text: none, those of matrix products, or those of convolutions too.
std::string kernels(const std::string& script) {
  std::string text;
  if (script.find("native::") == std::string::npos) return text;
  const bool convolves = script.find("native::Conv") != std::string::npos;
  for (const embedded::File& file : embedded::native_kernels()) {
    if (file.path.ends_with("conv.h") && !convolves) continue;
    for (const std::string_view line : lines_of(file.text)) {
      const bool own = line.starts_with("#pragma once") || line.starts_with("#include");
      if (!own && !(line.empty() && (text.empty() || text.ends_with("\n\n"))))
        text += std::string(line) + "\n";
    }
    text += "\n";
  }
  return text;
}

// A pointer and how far behind it.
std::string behind(const std::string& pointer, int64_t by) {
  return by == 0 ? pointer : fmt::format("{} + {}", pointer, by);
}
// ... and as many for each row before the first.
std::string of_rows(const std::string& pointer, int64_t count) {
  return pointer + (count == 1 ? " + first" : fmt::format(" + first * {}", count));
}

// Everything that a value must not be called, among the members of the network or as an argument of a function of C.
std::set<std::string> reserved(bool in_network = true) {
  std::set<std::string> all = cpp::cpp_words();
  all.merge(helpers().names());
  all.merge(words("std Tensor Network rows data all library failed error int32_t int64_t"));
  if (!in_network) return all;
  all.merge(words(
      "std Real kBatch kLearningRate Network parameters gradients arena whole_arena rows table first_row data_rows i j k l m "
      "n p t sum share step updates main argc argv forward backward update train_step predict_step restart load_data Memory Rows "
      "native team lanes pack local sums place begin part parts thread share_of batch_rows pass phase clear add_up more "
      "begin_update clipping squares square print_constants kBlock kBlocks kShares kSums kFew blocks "
      "load_weights kTable set_batch next_batch set_data inputs outputs output_names predict batch network library Library failed output output_shape dropout_key dropout_rate dropping masks learning_rate first "
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
    CodeWriter first_time(2);
    for (const Step& step : graph_.steps) print_step(step, first_time);
    book_.name_all(names_);
    memory();
    rows();
    network();
    main();
    const std::string own = finished(out_.text(), names_), used = helpers().used_by(own);
    out_ = CodeWriter(2);
    header();
    return out_.text() + kernels(used + own) + used + own;
  }

 private:
  // Whether what is printed calls kernels, itself or by helpers.
  static bool multiplies(const std::string& printed) {
    return (helpers().used_by(printed) + printed).find("native::") != std::string::npos;
  }
  bool trains() const { return graph_.trains(); }
  bool drops() const { return trains() && ir::drops(workload_); }
  bool used(int value) const {
    return std::ranges::any_of(graph_.steps,
                               [&](const Step& s) { return std::ranges::count(s.inputs, value) > 0; });
  }
  const Value& value(int id) const { return graph_.values[static_cast<size_t>(id)]; }

  bool splits_channels() const { return std::ranges::count(graph_.schedule.extents, Extent::kChannels) > 0; }
  int64_t size(Scope scope, bool whole = false) const {
    const auto found = graph_.sizes.find({scope, whole});
    return found == graph_.sizes.end() ? 0 : found->second;
  }

  void header();
  void memory();
  void rows();
  void network();
  void print_parameters();
  void print_packs();
  void print_places();
  void print_place();
  void print_phases();
  void print_inputs();
  void print_choices();
  void print_each();
  void print_pass();
  void print_sums();
  void print_table();
  void load_data();
  void set_batch();
  bool read_later(const Step& step, int id) const;
  void print_step(const Step& step, CodeWriter& out);
  void print_output();
  void print_batch();
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
  LoopBook book_;
  std::vector<size_t> loaded_;     // inputs that something reads
  std::vector<std::string> data_;  // by input: the vector that holds it
  CodeWriter out_{2, /*wide=*/true};
};

void Program::header() {
  const std::string stem = request_.script_name.substr(0, request_.script_name.rfind('.'));
  out_.print(R"(// $what$ $name$: one program, for which nothing but a C++20 compiler is needed.
//
//   g++ -std=c++20 -O3 -march=native -fno-math-errno -pthread $stem$.cc -o $stem$
//   ./$stem$ --data data.safetensors --weights weights.safetensors $more$

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <immintrin.h>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
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

void Program::memory() {
  out_.line("// What all threads see.");
  out_.line("struct Memory {");
  {
    const auto body = out_.indent();
    print_parameters();
    print_packs();
  }
  out_.line("};");
  out_.blank();
}

void Program::rows() {
  out_.line(
      "// The steps of the model for `rows` rows of the present batch, from row `first` on; one for each thread.");
  out_.line("struct Rows : Memory {");
  {
    const auto body = out_.indent();
    print_places();
    print_place();
    if (drops()) print_dropout();
    book_.print(out_);
    for (const Step& step : graph_.steps) print_step(step, out_);
    print_phases();
    trains() ? print_output() : print_outputs(out_, graph_, ports(true));
    print_batch();
  }
  out_.line("};");
  out_.blank();
}

void Program::network() {
  out_.line("struct Network : Memory {");
  {
    const auto body = out_.indent();
    print_table();
    print_inputs();
    if (trains()) print_state(out_, request_.training.optimizer);
    out_.print(R"(Team team;
std::deque<Rows> lanes;  // by thread

explicit Network(int64_t threads = default_threads()) : team(std::min(kShares, threads)) {
  for (int64_t i = 0; i < team.size(); ++i) lanes.emplace_back(*this);
}

void load_weights(const std::string& path) {
  load_parameters(path, table, parameters);
  pack(0, 1);
}

)");
    load_data();
    set_batch();
    if (trains()) print_update(out_, request_.training.optimizer, update_);
    print_choices();
    print_each();
    print_pass();
    if (trains())
      train_step();
    else
      print_prediction(out_, ports(true));
  }
  out_.line("};");
  out_.blank();
}

void Program::print_parameters() {
  if (trains()) {
    out_.print(
        R"(// Parameters, those that are trained first, and gradients of each share of a batch: when a step
// has ended, the first share's are the sum of all.
)");
    out_.line(fmt::format("static constexpr int64_t kTrained = {}, kShares = {};", update_.trained,
                          graph_.schedule.shares));
    out_.line("Real* const gradients = allocate<Real>(kShares * kTrained);");
  } else {
    out_.line("// Parameters; a batch has shares, which threads work off.");
    out_.line(fmt::format("static constexpr int64_t kShares = {};", graph_.schedule.shares));
  }
  out_.line(fmt::format("Real* const parameters = allocate<Real>({});", update_.all));
  for (const int id : update_.order) {
    const auto p = static_cast<size_t>(id);
    out_.line(fmt::format("Real* const {} = {};  // {}", graph_.parameters[p],
                          behind("parameters", update_.at[p]), ir::to_text(workload_.parameters[p].shape)));
  }
  out_.blank();
  out_.line(
      "// Values of a whole batch, and of each share what becomes a sum. Two that are never needed at once share their place.");
  if (size(Scope::kBatch) > 0)
    out_.line(fmt::format("Real* const arena = allocate<Real>({});", size(Scope::kBatch)));
  if (size(Scope::kBatch, true) > 0)
    out_.line(fmt::format("int32_t* const whole_arena = allocate<int32_t>({});", size(Scope::kBatch, true)));
  if (size(Scope::kShare) > 0) {
    out_.line(fmt::format("static constexpr int64_t kSums = {};", size(Scope::kShare)));
    out_.line("Real* const sums = allocate<Real>(kShares * kSums);");
  }
  out_.blank();
}

void Program::print_packs() {
  if (!graph_.packs.empty()) out_.line("// Weights as kernels read them.");
  for (const Pack& pack : graph_.packs)
    cpp::statement(out_, fmt::format("Real* const {} = allocate<Real>({});", pack.name, pack.size));
  out_.blank();
  out_.line("// Makes them anew: of `parts` parts, which threads share, each has every `parts`-th.");
  if (graph_.packs.empty()) return out_.line("void pack(int64_t, int64_t) {}");
  out_.line("void pack(int64_t part, int64_t parts) {");
  for (size_t i = 0; i < graph_.packs.size(); ++i) {
    out_.line(fmt::format("  if (part == {} % parts)", i));
    const auto body = out_.indent();
    const auto inner = out_.indent();
    cpp::statement(out_, graph_.packs[i].statement);
  }
  out_.line("}");
}

// Pointers that stay, then those that follow the rows.
void Program::print_places() {
  out_.line("[[gnu::noinline]] explicit Rows(const Memory& memory) : Memory(memory) {}");
  out_.blank();
  if (size(Scope::kThread) > 0)
    out_.line(fmt::format("Real* const local = allocate<Real>({});", size(Scope::kThread)));
  if (size(Scope::kThread, true) > 0)
    out_.line(fmt::format("int32_t* const whole_local = allocate<int32_t>({});", size(Scope::kThread, true)));
  const auto type = [](bool whole) { return whole ? "int32_t" : "Real"; };
  for (const Place& place : graph_.places) {
    const bool stays = place.scope == Scope::kThread || place.scope == Scope::kModel;
    if (!stays) {
      out_.line(fmt::format("{}* {} = nullptr;", type(place.whole), place.name));
      continue;
    }
    const char* const memory = place.scope == Scope::kThread ? place.whole ? "whole_local" : "local"
                               : place.whole                 ? "whole_arena"
                                                             : "arena";
    out_.line(fmt::format("{}* const {} = {};", type(place.whole), place.name, behind(memory, place.at)));
  }
  for (const int id : update_.order) {
    const std::string& name = graph_.gradients[static_cast<size_t>(id)];
    if (!name.empty()) out_.line(fmt::format("Real* {} = nullptr;", name));
  }
  for (const size_t i : loaded_) {
    const Value& v = value(static_cast<int>(i));
    out_.line(fmt::format("const {0} *{1} = nullptr, *{2} = nullptr;  // of the batch, of these rows",
                          type(v.whole()), data_[i], v.name));
  }
  out_.line("int64_t first = 0, rows = 0, batch_rows = 0;");
  if (splits_channels()) out_.line("int64_t part = 0, parts = 1;  // of the channels");
  if (drops()) out_.line("bool dropping = true;  // false: dropout passes everything on");
  if (drops()) out_.line("uint64_t masks = 0;    // drawn so far");
  out_.blank();
}

void Program::print_place() {
  out_.line("// Moves to `count` rows, which belong to a share of the batch.");
  const bool shares = trains() || size(Scope::kShare) > 0;
  out_.line(
      fmt::format("void place(int64_t{}, int64_t first_row, int64_t count) {{", shares ? " share" : ""));
  {
    const auto body = out_.indent();
    out_.line("first = first_row, rows = count;");
    for (const Place& place : graph_.places) {
      if (place.scope == Scope::kShare)
        out_.line(fmt::format("{} = {};", place.name, behind("sums + share * kSums", place.at)));
      if (place.scope == Scope::kBatch)
        out_.line(
            fmt::format("{} = {};", place.name,
                        of_rows(behind(place.whole ? "whole_arena" : "arena", place.at), place.count.count)));
    }
    for (const int id : update_.order) {
      const auto p = static_cast<size_t>(id);
      if (!graph_.gradients[p].empty())
        out_.line(fmt::format("{} = {};", graph_.gradients[p],
                              behind("gradients + share * kTrained", update_.at[p])));
    }
    for (const size_t i : loaded_) {
      const Value& v = value(static_cast<int>(i));
      out_.line(fmt::format("{} = {};", v.name, of_rows(data_[i], ir::elements(v.sizes, 1))));
    }
  }
  out_.line("}");
  out_.blank();
  if (!splits_channels()) return;
  out_.print(R"(// Moves to all rows, and part `mine` of `all` of the channels.
void part_of_batch(int64_t mine, int64_t all, int64_t count) {
  place(0, 0, count);
  part = mine, parts = all;
}

)");
}

void Program::print_inputs() {
  out_.line("// The data, and the rows of the present batch.");
  for (const size_t i : loaded_)
    out_.line(fmt::format("Feed<{}> {};", value(static_cast<int>(i)).whole() ? "int32_t" : "Real", data_[i]));
  out_.line("int64_t data_rows = 0, first_row = 0, rows = 0;");
  if (drops()) out_.line("bool dropping = true;  // false: dropout passes everything on");
  if (drops()) out_.line("uint64_t masks = 0;    // drawn so far");
  out_.blank();
}

void Program::print_table() {
  out_.line(
      "// Parameters as files have them: name, shape, and as they are held: shape and order of axes, place.");
  out_.line("static constexpr ParameterRow kTable[] = {");
  for (const int id : update_.order) {
    const auto p = static_cast<size_t>(id);
    const ir::Parameter& parameter = workload_.parameters[p];
    const ParamLayout& layout = graph_.layout.params[p];
    const ir::Shape& view = layout.view.empty() && !layout.perm.empty() ? parameter.shape : layout.view;
    cpp::statement(out_, fmt::format("    {{{}, {}, {}, {}, {}, {}}},", cpp::quote(parameter.name),
                                     cpp::braces(parameter.shape), cpp::braces(view),
                                     cpp::braces(layout.perm), update_.at[p], ir::trainable(parameter)));
  }
  out_.print("};\nconst std::vector<Parameter> table = parameters_of(kTable);\n\n");
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
void set_data(std::map<std::string, Tensor> tensors, const std::string& from) {
)");
  {
    const auto body = out_.indent();
    out_.line("check_inputs(from, tensors, inputs);");
    out_.line("data_rows = tensors.at(inputs[0].name).shape[0];");
    out_.line("first_row = 0;");
    for (const size_t i : loaded_) {
      const ir::Input& input = workload_.inputs[i];
      const Value& v = value(static_cast<int>(i));
      const bool turns = v.order == Order::kChannelsLast;
      const double divisor = v.whole() ? 1 : request_.training.input_divisor;
      std::string how = turns || divisor != 1 ? ", " + python_real(divisor) : "";
      if (turns)
        how += ", " + cpp::braces(conversion_perm(Order::kCanonical, v.order, input.type.shape.size()));
      cpp::statement(
          out_, fmt::format("{}.take(std::move(tensors.at({})){});", data_[i], cpp::quote(input.name), how));
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
    out_.line("for (Rows& lane : lanes) {");
    for (const size_t i : loaded_) out_.line(fmt::format("  lane.{0} = {0}.rows(first, count);", data_[i]));
    out_.line("  lane.batch_rows = count;");
    out_.line("}");
  }
  out_.print(R"(}

// In the order of the file; a partial last batch is left out.
void next_batch() {
  if (first_row + kBatch > data_rows) first_row = 0;
  set_batch(first_row, std::min(kBatch, data_rows));
  first_row += kBatch;
}

// Inputs and prediction of the present batch, axes as files have them; a proof asks for them.
std::vector<Tensor> batch() {
  lanes[0].place(0, 0, rows);
  return lanes[0].batch();
}
)");
  const char* const type = trains() ? "Tensor" : "std::map<std::string, Tensor>";
  const char* const name = trains() ? "output" : "outputs";
  out_.print("$type$ $name$() {\n  lanes[0].place(0, 0, rows);\n  return lanes[0].$name$();\n}\n\n",
             {{"type", type}, {"name", name}});
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

// Whether another step's way back has begun the gradient of a value.
bool Program::read_later(const Step& step, int id) const {
  return std::any_of(&step + 1, graph_.steps.data() + graph_.steps.size(),
                     [&](const Step& s) { return s.backward && std::ranges::count(s.inputs, id) > 0; });
}

// What a step's way back gives, once each.
std::vector<std::string> gradients_of(const Call& c) {
  std::vector<std::string> all;
  const auto add = [&](const std::string& name) {
    if (name != "nullptr" && std::ranges::count(all, name) == 0) all.push_back(name);
  };
  for (size_t i = 0; i < c.step.inputs.size(); ++i) add(c.dx(i));
  if (c.step.node < 0) return all;
  for (const ir::Slot& slot : c.node().params) add(c.dw(slot.name));
  return all;
}

void Program::print_step(const Step& step, CodeWriter& out) {
  const Call c{.graph = graph_, .step = step, .out = out, .book = &book_};
  const OpRow& row = step.node < 0 ? turn_row() : *find_row(graph_.node(step).op);
  std::vector<std::string> read;
  for (const int id : step.inputs) read.push_back(value(id).name);
  const std::string op = step.node < 0 ? "turned" : ir::info(graph_.node(step).op).name;
  std::string layer;
  if (step.node >= 0 && !graph_.node(step).params.empty())
    layer =
        layer_of(workload_.parameters[static_cast<size_t>(graph_.node(step).params[0].param)].name) + ": ";
  const std::string call = fmt::format("{}({})", op, join(read, ", "));
  out.line(fmt::format("// {}{} = {}, {}.", layer, c.y(), step.relu ? "relu(" + call + ")" : call,
                       ir::to_text(c.result().sizes)));
  out.line(fmt::format("void {}() {{", step.forward));
  {
    const auto body = out.indent();
    row.forward(c);
  }
  out.line("}");
  out.blank();
  if (!step.backward) return;
  out.line(fmt::format("// From {}: {}.", c.g(), join(gradients_of(c), ", ")));
  out.line(fmt::format("void {}() {{", step.way_back));
  {
    const auto body = out.indent();
    std::set<std::string> begun;
    Call back = c;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int id = step.inputs[i];
      if (!c.wants(i) || c.in(i).summed || read_later(step, id) || !begun.insert(c.dx(i)).second) continue;
      if (row.sets != nullptr && std::ranges::count(step.inputs, id) == 1 && row.sets(c, i))
        back.begun |= uint64_t{1} << i;
      else
        fill(out, c.dx(i), count_of(c.in(i).sizes));
    }
    row.backward(back);
  }
  out.line("}");
  out.blank();
}

void Program::print_phases() {
  const char* const names[] = {"For a few rows at a time", "For a share of the batch", "For the whole batch",
                               "For the whole batch, some channels"};
  for (size_t p = 0; p < graph_.schedule.phases.size(); ++p) {
    const Phase& phase = graph_.schedule.phases[p];
    out_.line(fmt::format("// {}.", names[static_cast<size_t>(phase.extent)]));
    out_.line(fmt::format("[[gnu::noinline]] void phase_{}() {{", p + 1));
    for (const Turn& turn : phase.turns) {
      const Step& step = graph_.steps[turn.step];
      out_.line(fmt::format("  {}();", turn.back ? step.way_back : step.forward));
    }
    out_.line("}");
    out_.blank();
  }
}

void Program::print_output() {
  out_.line("// The prediction for these rows, axes as the model has them.");
  out_.line("Tensor output() const {");
  {
    const auto body = out_.indent();
    cpp::statement(out_, fmt::format("return {};", tensor_text(workload_.prediction())));
  }
  out_.line("}");
  out_.blank();
}

void Program::print_batch() {
  out_.line("// The inputs of these rows, axes as files have them.");
  out_.line("std::vector<Tensor> batch() const {");
  std::vector<std::string> all;
  for (const size_t i : loaded_) all.push_back(tensor_text(static_cast<int>(i)));
  out_.print("  return {$all$};\n}\n", {{"all", join(all, ", ")}});
}

void Program::print_choices() {
  const Schedule& plan = graph_.schedule;
  const auto phase = [&](Extent extent) {
    return std::ranges::count(plan.phases, extent, &Phase::extent) > 0;
  };
  out_.print(
      R"(// What is chosen: rows that work together, blocks and tiles of matrix products; --tuned prints
// it. Nothing of it changes from run to run but the threads.
void print_constants() const {
)");
  const auto constant = [&](const std::string& name, const std::string& value) {
    out_.line(
        fmt::format("  std::printf(\"constexpr int64_t {} = %d;\\n\", static_cast<int>({}));", name, value));
  };
  constant("kBatch", "kBatch");
  constant("kShares", "kShares");
  constant("kThreads", "team.size()");
  if (phase(Extent::kFew)) constant("kRowsAtATime", std::to_string(plan.few));
  if (multiplies(out_.text())) {
    constant("kLanes", "native::Lanes<Real>::kLanes");
    constant("kTileRowsOfOneVector", "native::most_rows(1)");
    constant("kTileRowsOfTwoVectors", "native::most_rows(2)");
    constant("kBlockRows", "native::Blocks<Real>::kRows");
    constant("kBlockColumns", "native::Blocks<Real>::kColumns");
    constant("kBlockDepth", "native::kDepth<Real>");
  }
  out_.print("}\n\n");
}

void Program::print_each() {
  out_.print(R"(// Runs a phase for every share of this thread, `most` rows at a time.
void each(int64_t thread, int64_t most, void (Rows::*phase)()) {
  Rows& own = lanes[static_cast<size_t>(thread)];
  for (int64_t share = thread; share < kShares; share += team.size()) {
    const int64_t end = rows * (share + 1) / kShares;
    for (int64_t first = rows * share / kShares; first < end; first += most) {
      own.place(share, first, std::min(most, end - first));
      (own.*phase)();
    }
  }
}

)");
}

// Each thread's part of a pass, barriers where rows meet.
void Program::print_pass() {
  const Schedule& plan = graph_.schedule;
  out_.line(trains() ? "// Loss and gradients of the present batch: what one thread does for them."
                     : "// The prediction for the present batch: what one thread does for it.");
  out_.line("void pass(int64_t thread) {");
  if (trains()) {
    out_.print(R"(  for (int64_t share = thread; share < kShares; share += team.size()) {
    std::fill_n(gradients + share * kTrained, kTrained, Real{0});
)");
    if (size(Scope::kShare) > 0) out_.line("    std::fill_n(sums + share * kSums, kSums, Real{0});");
    out_.line("  }");
  }
  for (size_t p = 0; p < plan.phases.size(); ++p) {
    const Phase& phase = plan.phases[p];
    if (phase.waits) out_.line("  team.wait();");
    if (phase.extent == Extent::kChannels) {
      out_.line(
          fmt::format("  lanes[static_cast<size_t>(thread)].part_of_batch(thread, team.size(), rows);"));
      out_.line(fmt::format("  lanes[static_cast<size_t>(thread)].phase_{}();", p + 1));
    } else if (phase.extent == Extent::kBatch) {
      out_.line("  if (thread == 0) {");
      out_.line(fmt::format("    lanes[0].place(0, 0, rows);\n    lanes[0].phase_{}();", p + 1));
      out_.line("  }");
    } else {
      out_.line(fmt::format("  each(thread, {}, &Rows::phase_{});",
                            phase.extent == Extent::kFew ? std::to_string(plan.few) : "rows", p + 1));
    }
  }
  out_.line("}");
  out_.blank();
  if (trains()) return print_sums();
  out_.print(R"(// The prediction for the present batch.
void forward() {
  for (Rows& lane : lanes) lane.place(0, 0, rows);
  team.run([this](int64_t thread) { pass(thread); });
}

)");
}

// What shares have apart, together.
void Program::print_sums() {
  const Schedule& plan = graph_.schedule;
  const Value& loss = value(workload_.loss());
  if (plan.shares > 1) {
    out_.print(R"(// Adds up the gradients of all shares, from `begin` to `end`.
void add_up(int64_t begin, int64_t end) {
  for (int64_t share = 1; share < kShares; ++share) {
    for (int64_t i = begin; i < end; ++i) gradients[i] += gradients[share * kTrained + i];
  }
}

)");
  }
  out_.line("// Before a pass, on one thread.");
  out_.line("void begin() {");
  if (drops()) out_.line("  for (Rows& lane : lanes) lane.masks = masks, lane.dropping = dropping;");
  out_.line("  for (Rows& lane : lanes) lane.place(0, 0, rows);");
  if (!loss.gradient.empty()) out_.line(fmt::format("  lanes[0].{}[0] = 1;", loss.gradient));
  out_.print("}\n\n// After a pass: the loss of the present batch.\nReal loss() {\n");
  if (plan.adds_up) {
    out_.print(
        "  Real all = 0;\n  for (int64_t share = 0; share < kShares; ++share) {\n"
        "    lanes[0].place(share, 0, rows);\n");
    out_.line(fmt::format("    all += lanes[0].{}[0];", loss.name));
    out_.print("  }\n  return all;\n}\n\n");
  } else {
    out_.line(fmt::format("  return lanes[0].{}[0];", loss.name));
    out_.print("}\n\n");
  }
}

void Program::train_step() {
  const bool clips = request_.training.optimizer.clip_norm != 0, shares = graph_.schedule.shares > 1;
  out_.print(
      "// Loss of the present batch, and gradients, without an update: what a proof asks for.\n"
      "Real loss_and_gradients() {\n  begin();\n"
      "  team.run([this](int64_t thread) { pass(thread); });\n");
  if (shares) out_.line("  add_up(0, kTrained);");
  out_.print(
      "  return loss();\n}\n\n// One step on the present batch: its loss, before the update.\nReal train_step() {\n");
  if (drops()) out_.line("  ++masks;");
  out_.print(R"(  begin();
  begin_update();
  team.run([this](int64_t thread) {
    pass(thread);
    team.wait();
    const int64_t begin = kTrained * thread / team.size();
    const int64_t end = kTrained * (thread + 1) / team.size();
)");
  if (shares) out_.line("    add_up(begin, end);");
  if (clips) out_.print("    team.wait();\n    square(thread, team.size());\n    team.wait();\n");
  out_.print(R"(    update(begin, end);
    team.wait();
    pack(thread, team.size());
  });
  return loss();
}
)");
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
  print_start(out_);
  out_.print(R"(  std::signal(SIGINT, interrupt);
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
