// Which numbers of the file the workload trains, and as which parameters.
//
// Every float that the file states under a name, in an initialiser or a Constant node, has a number of its own
// (Array::origins), which moves with it: a Slice or a Transpose of a weight is computed at import and still knows what it
// holds. So a part of a weight is a parameter of its own where a layer reads it, and the walk can tell at its end whether
// each number is trained by one parameter alone. Where it is not, the file is walked again (Mapper::run):
//
//   whole       a tensor whose parts overlap, or that is read whole and in parts, or in two layouts, is one parameter;
//               Slice, Transpose and the like are nodes of the graph
//   everywhere  a tensor that an exporter has named trains in a layer and is computed with, too
//   frozen      a tensor of which the IR cannot train a part (a convolution whose kernel is computed): none of it is, and
//               a note says why
//
// Arithmetic with weights (weight norm, x (W + B A)) becomes nodes of the graph without rows (kNone). Who trains what,
// a file does not say. In the weight of a layer every number is trained; elsewhere those of names that people give:
// exporters store masks and positions in the same way.

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <cmath>

#include "base/texts.h"
#include "onnx/mapper.h"

namespace bakeoff::onnx {
namespace {

constexpr double kNoWeight = 1e9;  // masks have numbers of this size

// A name as people give them, not one that an exporter made: "12" is a counter's, "1.weight" that of a weight of the
// second module of torch.nn.Sequential.
bool given_name(const std::string& name) {
  if (name.starts_with("onnx::") || name.starts_with("val_") || name.starts_with("_")) return false;
  if (name.empty() || name[0] == '/') return false;
  const size_t after = name.find_first_not_of("0123456789.");
  if (after == std::string::npos || (after > 0 && name[after - 1] != '.')) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/';
  });
}

// Whether names are those of a module's tensors, and of what its tracer has made of them.
bool is_traced(const ModelFile& file) { return file.model().producer_name() == "pytorch"; }

// That exporter folds ops on constants and calls the results after the ops: "cos", "slice_1".
bool is_called_after_op(std::string name) {
  constexpr std::string_view kOps =
      " abs add alias any arange cat clamp clone copy cos cumsum detach div exp expand eye full full_like gather "
      "getitem index linspace log logical_not masked_fill matmul mean mul neg new_ones new_zeros ones ones_like outer "
      "permute pow reciprocal repeat reshape rsqrt rsub select sigmoid sin slice softmax split sqrt squeeze stack sub "
      "sum t tanh to transpose tril triu unsqueeze view where zeros zeros_like scalar_tensor_default lifted_tensor "
      "c_lifted_tensor _to_copy ";
  const size_t end = name.find_last_not_of("0123456789");
  const bool counted = end != std::string::npos && end + 1 < name.size() && name[end] == '_';
  if (counted) name.resize(end);
  // "t" alone may be a person's.
  return kOps.find(' ' + name + ' ') != std::string_view::npos && (counted || name.size() > 1);
}

// How many different numbers of the file an array holds; gaps: some of its own are none of them.
struct Spread {
  int64_t numbers = 0, entries = 0;
  bool gaps = false;
};

Spread spread_of(const Array& array) {
  if (array.origins.empty()) {
    const auto all = static_cast<int64_t>(array.first < 0 ? 0 : array.size());
    return {all, all, array.first < 0};
  }
  Spread made;
  int64_t low = -1, high = -1;
  for (const int64_t one : array.origins) {
    if (one < 0) continue;
    low = low < 0 ? one : std::min(low, one);
    high = std::max(high, one);
  }
  std::vector<bool> seen(static_cast<size_t>(high - low + 1));
  for (const int64_t one : array.origins) {
    if (one < 0) continue;
    ++made.entries;
    if (!seen[static_cast<size_t>(one - low)]) ++made.numbers;
    seen[static_cast<size_t>(one - low)] = true;
  }
  for (size_t i = 0; i < array.size() && !made.gaps; ++i) {
    bool any = false;
    for (size_t summand = 0; summand < array.summands(); ++summand)
      any = any || array.origin(summand * array.size() + i) >= 0;
    made.gaps = !any;
  }
  return made;
}

bool has_float_type(const wire::TensorProto& tensor) {
  const auto kind = kind_of(tensor.data_type());
  return kind && *kind == Kind::kFloat;
}

std::string numbered(const std::string& name, int64_t numbers) {
  return fmt::format("{} ({} number{})", name, numbers, numbers == 1 ? "" : "s");
}

}  // namespace

bool Mapper::made_by_exporter(const Value& v) const {
  const std::string name = source(v);
  return !given_name(name) || (is_traced(file_) && is_called_after_op(name));
}

bool Mapper::named_by_people(const std::string& name, const Array& array) const {
  const bool traced = is_traced(file_);
  if (!given_name(name) || (traced && is_called_after_op(name))) return false;
  for (const char* buffer : {"inv_freq", "running_mean", "running_var"}) {
    if (name.ends_with(buffer)) return false;
  }
  // Files that are written by hand have numbers like "two".
  if ((array.size() == 1 || array.shape.empty()) && !traced && name.find('.') == std::string::npos)
    return false;
  return std::ranges::all_of(array.reals, [](double x) { return std::abs(x) < kNoWeight; });
}

Value Mapper::of_file(const std::string& name, ArrayPtr array, bool constant_node) {
  if (const auto given = options_.given.find(name); given != options_.given.end()) array = given->second;
  if (!array->is_float() || array->size() == 0 || options_.frozen.contains(name)) return constant(array);
  const auto comparing = comparing_.find(scope_ + name);
  if (comparing != comparing_.end() && comparing->second == readers_.at(scope_ + name))
    return constant(array);
  const bool named = options_.everywhere.contains(name) || (!constant_node && named_by_people(name, *array));
  if (array->shape.empty() && !named) return constant(array);
  Array numbers = *array;
  numbers.first = next_origin_;
  next_origin_ += static_cast<int64_t>(numbers.size());
  const Shape declared = numbers.shape.empty() ? Shape{1} : numbers.shape;
  const ArrayPtr kept = std::make_shared<Array>(std::move(numbers));
  tensors_[kept->first] = {name, declared == kept->shape ? kept : shaped(*kept, declared), named,
                           constant_node};
  return constant(kept);
}

const Mapper::Tensor* Mapper::tensor_of(int64_t origin) const {
  const auto after = tensors_.upper_bound(origin);
  return origin < 0 || after == tensors_.begin() ? nullptr : &std::prev(after)->second;
}

std::set<const Mapper::Tensor*> Mapper::tensors_of(const Array& array) const {
  std::set<const Tensor*> made;
  if (array.origins.empty()) {
    if (array.first >= 0) made.insert(tensor_of(array.first));
    return made;
  }
  int64_t begin = 0, end = 0;  // of the tensor that was found last
  for (const int64_t one : array.origins) {
    if (one < 0 || (one >= begin && one < end)) continue;
    const Tensor* found = tensor_of(one);
    begin = found->array->first;
    end = begin + static_cast<int64_t>(found->array->size());
    made.insert(found);
  }
  return made;
}

bool Mapper::tracked(const Array& array) const {
  return array.has_origins() &&
         std::ranges::any_of(tensors_of(array), [](const Tensor* one) { return one->named; });
}

bool Mapper::is_whole(const Array& array) const {
  return !options_.whole.empty() && std::ranges::any_of(tensors_of(array), [&](const Tensor* one) {
    return options_.whole.contains(one->name);
  });
}

void Mapper::train_everywhere(const Value& v) {
  if (!v.is_const()) return;
  for (const Tensor* one : tensors_of(*v.at[0])) tensors_.at(one->array->first).named = true;
}

std::string Mapper::source(const Value& v) const {
  for (size_t i = 0; v.is_const() && v.at[0]->has_origins(); ++i) {
    if (v.at[0]->origin(i) >= 0) return tensor_of(v.at[0]->origin(i))->name;
  }
  return "";
}

bool Mapper::fits_slot(const Array& array) const {
  if (!is_whole(array)) {
    const Spread spread = spread_of(array);
    return !spread.gaps && spread.numbers == spread.entries;
  }
  const Array& all = *tensor_of(array.origin(0))->array;
  return array.first == all.first && array.shape == all.shape;
}

Error Mapper::cannot_train(const Array& array, const std::string& why) {
  for (const Tensor* one : tensors_of(array)) next_.frozen.emplace(one->name, why);
  gave_up_ = true;
  return refused(why);
}

// Where a node cannot be mapped, the weights that its inputs are computed from are not trained.
void Mapper::give_up(const Call& call, const std::string& why) {
  for (const Value& v : call.inputs) {
    if (!v.is_graph() || v.layout.n != kNone) continue;
    for (const std::string& name : fed_by_[v.name]) {
      next_.frozen.emplace(name, fmt::format("{}{}: {}", call.op(),
                                             call.name().empty() ? "" : " ('" + call.name() + "')", why));
      gave_up_ = true;
    }
  }
}

// What the values of a node without rows are made of.
void Mapper::remember_weights(const Call& call, const Values& made) {
  for (const Value& v : made) {
    if (!v.is_graph() || v.layout.n != kNone) continue;
    for (const Value& input : call.inputs) {
      if (input.is_graph()) fed_by_[v.name].insert(fed_by_[input.name].begin(), fed_by_[input.name].end());
      if (!tracked(input)) continue;
      for (const Tensor* one : tensors_of(*input.at[0])) fed_by_[v.name].insert(one->name);
    }
  }
}

// Whether moved numbers of the file can still be a parameter. Rows of the batch are repeated (operand() takes one).
bool Mapper::clean(const Value& made) const {
  if (!made.at[0]->is_float()) return true;
  const Spread spread = spread_of(*made.at[0]);
  return !spread.gaps && (spread.numbers == spread.entries || !made.fixed());
}

// The inputs of a node that reads constants alone: those that train, else the first, as values of the graph.
Status Mapper::on_graph(Call& call) {
  if (std::ranges::any_of(call.inputs, [](const Value& v) { return v.is_graph(); })) return Done{};
  const bool trains = std::ranges::any_of(call.inputs, [&](const Value& v) { return tracked(v); });
  const bool product = call.op() == "MatMul" || call.op() == "Gemm";
  if (trains && product && !call.inputs[0].fixed() && call.inputs[0].at[0]->is_float()) {
    TRY(call.inputs[0],
        as_value(call.inputs[0]));  // the state that a cell begins with, of as many rows as the batch
    return Done{};
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    Value& v = call.inputs[i];
    if (!v.is_const() || !v.at[0]->is_float()) continue;
    if (trains && product) train_everywhere(v);
    if (trains ? !tracked(v) : i > 0) continue;
    const Call from{call.node, call.opset, {v}, call.attributes, call.file};
    TRY(v, as_value(v));
    remember_weights(from, {v});
  }
  return Done{};
}

Result<Value> Mapper::as_value(const Value& v) {
  Layout layout{.dims = v.at[0]->shape, .n = kNone};
  for (size_t i = 0; i < layout.rank() && !v.fixed(); ++i) {
    const int64_t a = v.at[0]->shape[i], b = v.at[1]->shape[i];
    if (a == b) continue;
    if (layout.n >= 0 || a != sizes[0] || b != sizes[1])
      return refused("its shape is no simple function of the batch");
    layout.n = static_cast<int>(i);
    layout.dims[i] = 1;
  }
  if (layout.n < 0) {
    Shape shape = layout.dims;
    shape.insert(shape.begin(), 1);
    TRY(std::string name, stored(v, v.at[0], shape));
    return Value{.name = std::move(name), .layout = std::move(layout)};
  }
  TRY(const std::string row, operand(v, layout));
  const Value* rows = any_input();
  if (rows == nullptr || graph.shape(row).empty()) return refused("computes with constants alone");
  return make("expand", {row, rows->name}, layout, {{"shape", numbers_text(ir_shape(layout))}});
}

// A constant, of which `array` is one row, as a value of the graph.
Result<std::string> Mapper::stored(const Value& v, const ArrayPtr& array, const Shape& shape) {
  const bool trained = tracked(*array);
  if (trained && is_whole(*array)) {
    const Tensor& all = *tensor_of(array->origin(0));
    if (array->first != all.array->first || array->size() != all.array->size())
      return cannot_train(*array, "a part of it is read where the graph cannot take it");
    const std::string name = graph.parameter(all.name, all.array, false, all.name);
    return graph.reshape(graph.node("parameter", {}, all.array->shape, {}, {{"weight", name}}), shape);
  }
  // Rows that an exporter has repeated are no parameter.
  const Spread spread = spread_of(*array);
  if (trained && (spread.gaps || spread.numbers != spread.entries ||
                  spread_of(*v.at[0]).numbers != static_cast<int64_t>(array->size())))
    return cannot_train(*array, "its numbers are repeated, or joined with others");
  const std::string source = this->source(v);
  const std::string wanted = source.empty() || source.starts_with('/') ? graph.base + ".constant" : source;
  const std::string name = trained ? declared(v, shaped(*array, shape), wanted, "scale", true)
                                   : graph.parameter(wanted, shaped(*array, shape), true, source);
  if (trained) note_reader(name);
  return graph.node("parameter", {}, shape, {}, {{"weight", name}});
}

void Mapper::note_reader(const std::string& parameter) {
  if (current_ != nullptr && current_->output_size() > 0)
    layers_[parameter].insert(scope_ + current_->output(0));
}

// The initialisers and other values that the output needs.
std::set<std::string> Mapper::needed() const {
  std::set<std::string> wanted(result_.output_names.begin(), result_.output_names.end());
  const auto read = [&](const auto& self, const wire::NodeProto& n) -> void {
    wanted.insert(n.input().begin(), n.input().end());
    for (const auto& a : n.attribute()) {
      for (const auto& inner : a.g().node()) self(self, inner);
      for (const auto& output : a.g().output()) wanted.insert(output.name());
    }
  };
  const auto& nodes = file_.model().graph().node();
  for (int i = nodes.size(); i-- > 0;) {
    if (std::ranges::any_of(nodes[i].output(), [&](const auto& name) { return wanted.contains(name); }))
      read(read, nodes[i]);
  }
  return wanted;
}

// Finds what trains each number of the file, and the tensors that the next walk takes in another way.
void Mapper::settle_tensors(const std::set<std::string>& statistics) {
  const std::vector<GraphParameter>& all = result_.parameters;
  std::vector<int32_t> owner(static_cast<size_t>(next_origin_), -1);
  // Not, as statistics, by gradients.
  const auto moves = [&](const GraphParameter& p) {
    return p.frozen ? 0 : statistics.contains(p.name) ? 1 : 2;
  };
  for (size_t k = 0; k < all.size(); ++k) {
    const Array& array = *all[k].array;
    for (size_t i = 0; array.has_origins() && i < array.summands() * array.size(); ++i) {
      const int64_t origin = array.origin(i);
      if (origin < 0) continue;
      int32_t& at = owner[static_cast<size_t>(origin)];
      const GraphParameter* other = at < 0 ? nullptr : &all[static_cast<size_t>(at)];
      const int mine = moves(all[k]), before = other == nullptr ? -1 : moves(*other);
      if (mine > before) at = static_cast<int32_t>(k);
      if (other == nullptr || (all[k].frozen && other->frozen)) continue;
      if (all[k].apart && other->apart) {
        result_.numbers.apart += mine == 2 && before == 2 ? 1 : 0;
        continue;
      }
      const Tensor& both = *tensor_of(origin);
      if (options_.whole.contains(both.name))
        next_.frozen.emplace(both.name, "layers read it in different ways");
      next_.whole.insert(both.name);
      next_.everywhere.insert(both.name);
    }
    if (moves(all[k]) < 2 || !array.has_origins()) continue;
    result_.numbers.summed += spread_of(array).entries - static_cast<int64_t>(array.size());
  }
  for (const auto& [first, tensor] : tensors_) {
    for (size_t i = 0; i < tensor.array->size(); ++i) {
      const int32_t at = owner[static_cast<size_t>(first) + i];
      if (at < 0) continue;
      read_[tensor.name] += 1;
      const int by = moves(all[static_cast<size_t>(at)]);
      if (by == 0) continue;
      result_.trained_sources.insert(tensor.name);
      (by == 1 ? moved_ : trained_)[tensor.name] += 1;
    }
    if (computed_with_.contains(tensor.name) && trained_.contains(tensor.name) && !tensor.named)
      next_.everywhere.insert(tensor.name);
  }
}

void Mapper::count_numbers() {
  FileNumbers& numbers = result_.numbers;
  const std::set<std::string> wanted = needed();
  std::vector<std::string> constants;
  const auto add = [&](const std::string& name, int64_t size, bool named) {
    const int64_t trained = trained_[name];
    // Parts that nothing reads: rows of a table behind the last position.
    const bool parts = read_[name] > 0 && !computed_with_.contains(name);
    const int64_t unread = parts ? size - read_[name] : 0, rest = size - trained - moved_[name] - unread;
    numbers.trained += trained;
    numbers.left_out += unread;
    numbers.frozen += size - trained - unread;
    if (const auto why = options_.frozen.find(name); why != options_.frozen.end())
      notes.insert(fmt::format("not trained: {}, because {}", numbered(name, size), why->second));
    else if (rest > 0 && (named || read_[name] > 0 || computed_with_.contains(name)) &&
             (size > 1 || given_name(name)))
      constants.push_back(numbered(name, rest));
  };
  std::map<std::string, bool> named;
  for (const auto& [first, tensor] : tensors_) {
    named[tensor.name] = tensor.named;
    if (!initialisers_.contains(tensor.name) && read_[tensor.name] > 0)
      add(tensor.name, static_cast<int64_t>(tensor.array->size()), tensor.named);
  }
  for (const auto& [name, tensor] : initialisers_) {
    if (!has_float_type(*tensor) || (tensor->dims_size() == 0 && !trained_.contains(name))) continue;
    const int64_t size = tensor::elements(Shape(tensor->dims().begin(), tensor->dims().end()));
    if (wanted.contains(name))
      add(name, size, named[name]);
    else
      numbers.left_out += size;
  }
  if (constants.size() > 8) constants.resize(8), constants.push_back("...");
  if (!constants.empty()) notes.insert("constants that are not trained: " + join(constants, ", "));
}

// Exporters merge weights that are equal, and write one that two layers share a second time, where one of them needs it
// transposed.
void Mapper::note_copies() {
  std::vector<std::string> shared;
  for (const GraphParameter& p : result_.parameters) {
    if (!p.frozen && layers_[p.name].size() > 1) shared.push_back(p.name);
  }
  const size_t more = shared.size() > 8 ? shared.size() - 8 : 0;
  if (more > 0) shared.resize(8), shared.push_back(fmt::format("{} more", more));
  if (!shared.empty())
    notes.insert(fmt::format(
        "several layers share these weights, as they do in the file; an exporter merges weights that are equal: {}",
        join(shared, ", ")));
  std::vector<const Tensor*> matrices;
  for (const auto& [first, tensor] : tensors_) {
    if (tensor.array->shape.size() == 2 && tensor.array->size() > 1 && trained_.contains(tensor.name))
      matrices.push_back(&tensor);
  }
  for (size_t i = 0; i < matrices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Array &a = *matrices[i]->array, &b = *matrices[j]->array;
      const auto rows = static_cast<size_t>(a.shape[0]), columns = a.size() / rows;
      bool equal = a.shape == Shape(b.shape.rbegin(), b.shape.rend());
      for (size_t at = 0; equal && at < a.size(); ++at)
        equal = a.reals[at] == b.reals[at % columns * rows + at / columns];
      if (!equal) continue;
      notes.insert(fmt::format(
          "'{}' holds the numbers of '{}', transposed: the exporter has untied them, and they are trained apart",
          matrices[i]->name, matrices[j]->name));
    }
  }
}

}  // namespace bakeoff::onnx
