// Each kind of cell is a list of steps, as torch decomposes it: a step reads earlier steps, or x, h and c. A node
// that begins with the first step's parameters is compared with the list, node by node. Sums and products may have their
// operands the other way round; anything else that differs (another order of gates, a node in between) is no cell.

#include "emit/torch_cells.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/texts.h"
#include "emit/code_writer.h"
#include "ir/op_table.h"

namespace bakeoff::emit {
namespace {

using ir::Op;

struct Step {
  Op op;
  int a = 0, b = 0;  // the steps that it reads, or -1, -2, -3 for x, h and c; of a slice `b` is its number
};

struct Form {
  std::string type;
  int64_t gates;
  int from_h;  // the linear layer of h
  int next_c;  // -1: has none
  std::vector<Step> steps;
};

std::vector<Step> steps_of(const std::string& text) {
  const auto operand = [](const std::string& word) {
    const size_t name = std::string("xhc").find(word);
    return name == std::string::npos ? std::stoi(word) : -1 - static_cast<int>(name);
  };
  std::vector<Step> steps;
  for (const std::string& step : split(text, "; ")) {
    const std::vector<std::string> words = split(step, " ");
    steps.push_back({ir::find_op(words[0])->op, operand(words[1]), words.size() > 2 ? operand(words[2]) : 0});
  }
  return steps;
}

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"LSTMCell", 4, 1, 12,
       steps_of(
           "linear x; linear h; add 0 1; slice 2 0; slice 2 1; slice 2 2; slice 2 3; sigmoid 4; mul 7 c; tanh 5; "
           "sigmoid 3; mul 10 9; add 8 11; tanh 12; sigmoid 6; mul 14 13")},
      {"GRUCell", 3, 4, -1,
       steps_of(
           "linear x; slice 0 0; slice 0 1; slice 0 2; linear h; slice 4 0; slice 4 1; slice 4 2; add 1 5; "
           "sigmoid 8; add 2 6; sigmoid 10; mul 9 7; add 3 12; tanh 13; sub h 14; mul 11 15; add 14 16")},
      {"RNNCell", 1, 1, -1, steps_of("linear x; linear h; add 0 1; tanh 2")},
      {"RNNCell", 1, 1, -1, steps_of("linear x; linear h; add 0 1; relu 2")}};
  return all;
}

class Matcher {
 public:
  Matcher(const ir::Workload& workload, const std::vector<ir::Type>& types)
      : workload_(workload), types_(types), readers_(last_readers(workload)), outputs_(workload.outputs()) {}

  std::optional<Cell> at(int first) {
    for (const Form& form : forms())
      if (matches(form, first)) return cell_;
    return std::nullopt;
  }

 private:
  const ir::Node& node(int n) const { return workload_.nodes[static_cast<size_t>(n)]; }
  const ir::Shape& shape(ir::ValueId id) const { return types_[static_cast<size_t>(id)].shape; }
  const ir::Parameter& parameter(const ir::Node& n, const char* slot) const {
    return workload_.parameters[static_cast<size_t>(n.param(slot))];
  }

  bool matches(const Form& form, int first) {
    const int end = first + static_cast<int>(form.steps.size());
    if (end > workload_.model_end()) return false;
    for (size_t i = 0; i < form.steps.size(); ++i)
      if (node(first + static_cast<int>(i)).op != form.steps[i].op) return false;
    cell_ = {.type = form.type, .first = first, .end = end};
    read_ = {-1, -1, -1};
    if (!owns(node(first), "ih") || !owns(node(first + form.from_h), "hh")) return false;
    cell_.inputs = parameter(node(first), "weight").shape[1];
    cell_.units = parameter(node(first + form.from_h), "weight").shape[1];
    if (parameter(node(first), "weight").shape[0] != form.gates * cell_.units) return false;
    for (int i = 0; i < end - first; ++i)
      if (!is(i, form)) return false;
    cell_.relu = form.steps.back().op == Op::kRelu;
    cell_.x = read_[0];
    cell_.h = read_[1];
    cell_.c = read_[2];
    if (form.next_c >= 0) cell_.next_c = workload_.output_of(first + form.next_c);
    const ir::Shape state = {ir::kBatch, cell_.units};
    return shape(cell_.x) == ir::Shape{ir::kBatch, cell_.inputs} && shape(cell_.h) == state &&
           (cell_.c < 0 || shape(cell_.c) == state);
  }

  // Whether the linear layer's parameters are called <path>.weight_ih and <path>.bias_ih, and trained.
  bool owns(const ir::Node& linear, const std::string& suffix) {
    const std::string path = layer_of(parameter(linear, "weight").name);
    if (cell_.leaves.empty()) {
      cell_.path = path;
      cell_.bias = linear.has("bias");
    }
    for (const ir::Slot& slot : linear.params) {
      const ir::Parameter& p = workload_.parameters[static_cast<size_t>(slot.param)];
      cell_.leaves[slot.param] = slot.name + "_" + suffix;
      if (p.frozen || p.name != cell_.path + "." + cell_.leaves[slot.param]) return false;
    }
    return linear.has("bias") == cell_.bias;
  }

  // Whether a value is what a step says; of x, h and c the first value that stands for it.
  bool stands_for(ir::ValueId id, int what) {
    if (what >= 0) return id == workload_.output_of(cell_.first + what);
    ir::ValueId& known = read_[static_cast<size_t>(-1 - what)];
    if (known < 0 && id < workload_.output_of(cell_.first)) known = id;
    return id == known;
  }

  bool is(int i, const Form& form) {
    const Step& step = form.steps[static_cast<size_t>(i)];
    const ir::Node& n = node(cell_.first + i);
    const ir::ValueId value = workload_.output_of(cell_.first + i);
    const bool open = cell_.first + i + 1 == cell_.end || i == form.next_c;
    const bool given = std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end();
    if (!open && (given || readers_[static_cast<size_t>(value)] >= cell_.end)) return false;
    if (n.inputs.size() < 2) {
      const int64_t begin = step.b * cell_.units;
      return stands_for(n.inputs[0], step.a) &&
             (step.op != Op::kSlice || (n.integer("axis") == 1 && n.integer("begin") == begin &&
                                        n.integer("step") == 1 && n.integer("end") == begin + cell_.units));
    }
    const auto reads = [&](size_t a, size_t b) {
      return stands_for(n.inputs[a], step.a) && stands_for(n.inputs[b], step.b);
    };
    return reads(0, 1) || (step.op != Op::kSub && reads(1, 0));
  }

  const ir::Workload& workload_;
  const std::vector<ir::Type>& types_;
  std::vector<int> readers_;
  std::vector<ir::ValueId> outputs_;
  Cell cell_;
  std::array<ir::ValueId, 3> read_ = {};  // x, h, c
};

}  // namespace

std::vector<Cell> find_cells(const Request& request, const std::vector<ir::Type>& types,
                             const Stretch& stretch, const Blocks& blocks, const std::vector<Loop>& loops) {
  const ir::Workload& workload = request.workload;
  if (request.training.generates()) return {};  // weights in half precision beside biases that are not
  std::map<int, int> places;  // of the nodes in print, in the order in which they are printed
  std::set<int> covered;
  for (const Loop& loop : loops) {
    for (size_t i = 0; i < loop.body.size(); ++i) places[loop.body[i]] = loop.first + static_cast<int>(i);
    covered.insert(loop.covered.begin(), loop.covered.end());
  }
  for (int n = stretch.first; n < stretch.end; ++n) {
    if (const Block* block = blocks.at(n, stretch))
      n = block->stretch.end - 1;
    else if (!covered.contains(n))
      places[n] = n;
  }
  std::vector<Cell> cells;
  std::set<int> inside;  // nodes of cells
  Matcher matcher(workload, types);
  for (const auto& [n, place] : places) {
    if (workload.nodes[static_cast<size_t>(n)].op != Op::kLinear) continue;
    const std::optional<Cell> cell = matcher.at(n);
    if (!cell) continue;
    bool together = true;
    for (int k = n; k < cell->end; ++k)
      together = together && places.contains(k) && places.at(k) - place == k - n &&
                 covered.contains(k) == covered.contains(n);
    if (!together) continue;
    cells.push_back(*cell);
    for (int k = n; k < cell->end; ++k) inside.insert(k);
  }
  std::set<std::string> other;  // paths with parameters that are read elsewhere, or that no cell reads
  for (const auto& [n, _] : places)
    for (const ir::Slot& slot : workload.nodes[static_cast<size_t>(n)].params)
      if (!inside.contains(n))
        other.insert(layer_of(workload.parameters[static_cast<size_t>(slot.param)].name));
  std::erase_if(cells, [&](const Cell& cell) {
    const auto below = std::count_if(workload.parameters.begin(), workload.parameters.end(),
                                     [&](const auto& p) { return p.name.starts_with(cell.path + "."); });
    return other.contains(cell.path) || static_cast<size_t>(below) != cell.leaves.size();
  });
  return cells;
}

bool is_cell(const std::vector<Cell>& cells, const Stretch& stretch) {
  return std::any_of(cells.begin(), cells.end(), [&](const Cell& cell) { return cell.path == stretch.path; });
}

}  // namespace bakeoff::emit
