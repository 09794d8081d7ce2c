// What the rows use: layouts, broadcasting, weights and their names.
//
// Layouts. A value of ONNX has N on one axis, perhaps merged with elements before and after it. The IR's
// value is the same numbers with N as axis 0 and the merged parts as axes of their own:
//
//   ONNX                 Layout                                  IR
//   [N, 3, 8]            dims 1,3,8   n 0                        [N, 3, 8]
//   [T, N, F]            dims T,1,F   n 1                        [N, T, F]
//   [N * 4, 8]           dims 4,8     n 0   before 1, after 4    [N, 4, 8]
//   [3, 8]               dims 3,8     n kAdded (one row)         [N, 3, 8]
//
// So a reshape or transposition of ONNX is a new Layout and at most one node. regrouped() finds the layout
// after a reshape: the axis that holds N has the same quotient size / batch at both batch sizes, and the
// elements of a row in front of N and behind it stay the same. If several axes fit, one with N alone is
// preferred. If none fits, the reshape cuts the batch.
//
// Constants that meet values (operand): all rows along the batch must be equal, and become one row. The
// result is a number or a parameter. The parameter is trained only if its name looks like one from a person
// (tensors.cc), because exporters store masks and positions in the same way.

#include "onnx/mapper.h"

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <numeric>

#include "base/texts.h"

namespace bakeoff::onnx {
double shortest(double number) {
  const auto single = static_cast<float>(number);
  // The slope of HardSigmoid in torch, which has no short form.
  return single == 1.0F / 6 ? 1.0 / 6 : number_in(fmt::format("{}", single));
}

Error refused(const std::string& why) { return Error{.message = why}; }

Shape ir_shape(const Layout& layout) {
  Shape shape = {layout.n == kNone ? 1 : kBatch};
  for (size_t axis = 0; axis < layout.rank(); ++axis) {
    if (!layout.holds_batch(axis)) {
      shape.push_back(layout.dims[axis]);
      continue;
    }
    if (layout.before > 1) shape.push_back(layout.before);
    if (layout.after > 1) shape.push_back(layout.after);
  }
  return shape;
}

int64_t ir_axis(const Layout& layout, size_t axis) {
  if (layout.n < 0) return static_cast<int64_t>(axis) + 1;
  const auto a = static_cast<int64_t>(axis);
  if (a < layout.n) return a + 1;
  return a + (layout.before > 1 ? 1 : 0) + (layout.after > 1 ? 1 : 0);
}

const std::string& Call::op() const { return node.op_type(); }
const std::string& Call::name() const { return node.name(); }
size_t Call::outputs() const {
  return static_cast<size_t>(
      std::count_if(node.output().begin(), node.output().end(), [](const auto& o) { return !o.empty(); }));
}
const Value& Call::in(size_t input) const {
  static const Value kAbsent;
  return input < inputs.size() ? inputs[input] : kAbsent;
}
int64_t Call::integer(const std::string& name, int64_t fallback) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : found->second->i();
}
double Call::real(const std::string& name, double fallback) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : shortest(found->second->f());
}
std::vector<double> Call::reals(const std::string& name) const {
  const auto found = attributes.find(name);
  return found == attributes.end()
             ? std::vector<double>()
             : std::vector<double>(found->second->floats().begin(), found->second->floats().end());
}
Ints Call::integers(const std::string& name, Ints fallback) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback
                                   : Ints(found->second->ints().begin(), found->second->ints().end());
}
std::string Call::text(const std::string& name, const std::string& fallback) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : found->second->s();
}
Result<ArrayPtr> Call::array(const std::string& name) const {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return refused("has no attribute '" + name + "'");
  return file.decode(found->second->t());
}

Mapper::Mapper(const ModelFile& file, MapOptions options) : file_(file), options_(std::move(options)) {
  added = options_.added_batch;
}

// ---- for the rows

Value Mapper::make(const std::string& op, std::vector<std::string> inputs, Layout layout,
                   Attributes attributes, Params params, Kind kind) {
  const Shape shape = ir_shape(layout);
  return Value{.name = graph.node(op, std::move(inputs), shape, std::move(attributes), std::move(params)),
               .kind = kind,
               .layout = std::move(layout)};
}

Value Mapper::reshaped(const Value& v, const Layout& layout) {
  return Value{
      .name = graph.reshape(v.name, ir_shape(layout)), .kind = v.kind, .layout = layout, .bound = v.bound};
}

Value Mapper::transposed_value(const Value& v, const Ints& perm) {
  Layout out = v.layout;
  Ints axes = {0};
  for (size_t i = 0; i < perm.size(); ++i) {
    const auto from = static_cast<size_t>(perm[i]);
    out.dims[i] = v.layout.dims[from];
    if (!v.layout.holds_batch(from)) {
      axes.push_back(ir_axis(v.layout, from));
      continue;
    }
    out.n = static_cast<int>(i);
    int64_t at = static_cast<int64_t>(from) + 1;
    if (v.layout.before > 1) axes.push_back(at++);
    if (v.layout.after > 1) axes.push_back(at++);
  }
  return Value{.name = graph.transpose(v.name, axes), .kind = v.kind, .layout = out, .bound = v.bound};
}

Result<Layout> Mapper::broadcast_layout(const Values& operands) const {
  if (std::any_of(operands.begin(), operands.end(), [](const Value& v) { return v.absent(); }))
    return refused("an input is missing");
  size_t rank = 0;
  for (const Value& v : operands)
    rank = std::max(rank, v.is_const() ? v.at[0]->shape.size() : v.layout.rank());
  const auto has_rows = [](const Value& v) { return v.is_graph() && v.layout.n != kNone; };
  Layout out{.dims = Shape(rank, 1), .n = std::ranges::any_of(operands, has_rows) ? kAdded : kNone};
  bool found = false;
  for (const Value& v : operands) {
    if (!v.is_graph() || v.layout.n < 0) continue;
    const int n = v.layout.n + static_cast<int>(rank - v.layout.rank());
    if (found && (n != out.n || v.layout.before != out.before || v.layout.after != out.after))
      return refused("rows of the batch meet: N lies on different axes of the inputs");
    found = true;
    out.n = n;
    out.before = v.layout.before;
    out.after = v.layout.after;
  }
  for (const Value& v : operands) {
    const Shape& dims = v.is_const() ? v.at[0]->shape : v.layout.dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      const size_t axis = rank - dims.size() + i;
      if (out.holds_batch(axis)) continue;
      if (dims[i] != 1 && out.dims[axis] != 1 && dims[i] != out.dims[axis])
        return refused("the sizes of the inputs do not broadcast");
      if (dims[i] != 1) out.dims[axis] = dims[i];
    }
  }
  if (out.n >= 0) out.dims[static_cast<size_t>(out.n)] = out.before * out.after;
  return out;
}

namespace {

// One row of a constant along the batch axis of `out`, where all rows are equal; before and after apart.
Result<ArrayPtr> one_row(const ArrayPtr& array, const Layout& out, int64_t batch) {
  Shape shape(out.rank() - array->shape.size(), 1);
  shape.insert(shape.end(), array->shape.begin(), array->shape.end());
  if (out.n < 0) return shaped(*array, shape);
  const auto n = static_cast<size_t>(out.n);
  Shape split(shape.begin(), shape.begin() + out.n);
  const bool whole = shape[n] == out.before * batch * out.after && !(shape[n] == 1 && batch != 1);
  if (shape[n] != 1 && !whole) return refused("a constant has several rows where the batch is");
  const int64_t rows = whole ? batch : 1;
  const int64_t before = whole ? out.before : 1, after = whole ? out.after : 1;
  split.insert(split.end(), {before, rows, after});
  split.insert(split.end(), shape.begin() + out.n + 1, shape.end());
  const ArrayPtr all = shaped(*array, split);
  const ArrayPtr first = sliced(*all, n + 1, 0, 1);
  if (rows > 1) {
    TRY(const ArrayPtr again, expanded(first, split));
    if (again->reals != all->reals || again->ints != all->ints)
      return refused("a constant differs between rows of the batch");
  }
  Shape kept(split.begin(), split.begin() + out.n);
  if (out.before > 1) kept.push_back(before);
  if (out.after > 1) kept.push_back(after);
  kept.insert(kept.end(), shape.begin() + out.n + 1, shape.end());
  return shaped(*first, kept);
}

}  // namespace

std::string Mapper::scalar(double number) {
  return graph.node("constant", {}, {}, {{"value", real_text(number)}});
}

Result<std::string> Mapper::frozen(const std::string& wanted, ArrayPtr array) {
  return graph.parameter(wanted, array, true, "");
}

Result<std::string> Mapper::operand(const Value& v, const Layout& out) {
  if (v.is_graph() && v.layout.n == kNone && out.n != kNone) {
    // One row for all.
    const auto before = static_cast<int>(out.rank() - v.layout.rank());
    Layout padded{.dims = Shape(out.rank(), 1), .n = out.n, .before = 1, .after = 1};
    std::copy(v.layout.dims.begin(), v.layout.dims.end(), padded.dims.begin() + before);
    if (out.n >= before && v.layout.dims[static_cast<size_t>(out.n - before)] != 1)
      return refused("weights have several rows where the batch is");
    Shape shape = ir_shape(padded);
    shape[0] = 1;
    if (out.n >= 0)
      shape.insert(shape.begin() + out.n + 1, size_t{out.before > 1} + size_t{out.after > 1}, 1);
    return graph.reshape(v.name, shape);
  }
  if (v.is_graph()) {
    Layout padded = out;
    std::fill(padded.dims.begin(), padded.dims.end(), 1);
    std::copy(v.layout.dims.begin(), v.layout.dims.end(),
              padded.dims.end() - static_cast<int64_t>(v.layout.rank()));
    return graph.reshape(v.name, ir_shape(padded));
  }
  TRY(const ArrayPtr a, one_row(v.at[0], out, sizes[0]));
  TRY(const ArrayPtr b, one_row(v.at[1], out, sizes[1]));
  if (*a != *b) return refused("a constant depends on the batch size");
  if (a->kind == Kind::kBool) return refused("a constant of booleans has no counterpart here");
  if (a->size() == 1 && !tracked(*a)) {
    for (const Tensor* one : tensors_of(*a)) computed_with_.insert(one->name);
    return scalar(a->real(0));
  }
  TRY(const ArrayPtr reals, converted(a, Kind::kFloat));
  Shape shape = a->shape;
  shape.insert(shape.begin(), 1);
  return stored(v, reals, shape);
}

Result<Value> Mapper::elementwise(const std::string& op, const Values& operands, Attributes attributes,
                                  Kind kind) {
  TRY(const Layout out, broadcast_layout(operands));
  std::vector<std::string> names;
  for (const Value& v : operands) {
    TRY(std::string name, operand(v, out));
    names.push_back(std::move(name));
  }
  return make(op, std::move(names), out, std::move(attributes), {}, kind);
}

Result<Value> Mapper::scalar_op(const std::string& op, const Value& x, double number) {
  return elementwise(op, {x, constant(of_real(number))});
}

namespace {

// "/layers/layers.0/fc1/MatMul" is a node of the layer "layers.0.fc1": an exporter names what stands in a list after the
// list, too.
std::string layer_of_scopes(const std::string& node) {
  std::string path;
  std::string list;  // the last scope
  for (size_t begin = 1, end; (end = node.find('/', begin)) != std::string::npos; begin = end + 1) {
    const std::string scope = node.substr(begin, end - begin);
    if (!list.empty() && scope.starts_with(list + "."))
      path += scope.substr(list.size());
    else
      path += (path.empty() ? "" : ".") + scope;
    list = scope;
  }
  return path;
}

// "/cell_1/gate" as "/cell/gate".
std::string uncounted(const std::string& scope) {
  std::string made;
  for (size_t i = 0; i < scope.size(); ++i) {
    const size_t end = scope.find_first_not_of("0123456789", i + 1);
    if (scope[i] == '_' && end != i + 1 && (end == std::string::npos || scope[end] == '/'))
      i = std::min(end, scope.size()) - 1;
    else
      made += scope[i];
  }
  return made;
}

}  // namespace

std::string Mapper::weight_name(const Value& v, const std::string& slot) const {
  const std::string source = this->source(v);
  if (tracked(v)) return source;
  const std::string node = current_ == nullptr ? "" : current_->name();
  if (node.starts_with('/') && node.rfind('/') > 0) return layer_of_scopes(node) + "." + slot;
  if (!source.empty() && !source.starts_with("onnx::") && !source.starts_with('/')) return source;
  return graph.base + "." + slot;
}

// The parameter of a layer. Exporters merge equal initialisers, so all zero biases, scales of 1 and kernels of 0 of a
// model may be one: each layer gets its own from such a tensor, and one that is called again, as a cell at every step,
// reads that. With moved numbers (`given`) they are no longer equal; the list of the first import then says which they
// are.
std::string Mapper::declared(const Value& v, const ArrayPtr& array, const std::string& wanted,
                             const std::string& slot, bool trained) {
  const std::string source = this->source(v);
  const bool level = array->size() > 1 && std::all_of(array->reals.begin(), array->reals.end(),
                                                      [&](double x) { return x == array->reals[0]; });
  const bool own = !source.empty() && !is_whole(*array) &&
                   (options_.given.contains(source) ? options_.unshared.contains(source) : level);
  if (!own) return graph.parameter(wanted, array, !trained, source);
  result_.unshared.insert(source);
  auto& names = own_names_[source];
  std::string& name = names[fmt::format("{} {} {}", layer_called(), slot, tensor::to_text(array->shape))];
  if (!name.empty()) return name;
  if (names.size() > 1)
    notes.insert("weights of equal numbers that the file shares between layers are apart in the workload");
  name = names.size() == 1 ? wanted : weight_name(constant(without_origins(v.at[0])), slot);
  return name = graph.parameter(name, array, !trained, source, false);
}

// The scope of the present node in a file of torch's, "/cell"; else the node itself. A module that is called again has a
// scope of its own, "/cell_1": what reads a matrix of another scope is the same layer.
std::string Mapper::layer_called() {
  if (current_ == nullptr) return "";
  const std::string& node = current_->name();
  if (!node.starts_with('/') || node.rfind('/') == 0) return scope_ + current_->output(0);
  if (layer_of_scope_.empty()) {
    std::map<std::string, std::string> readers;  // of matrices, the first scope
    for (const auto& n : file_.model().graph().node()) {
      const std::string scope = n.name().substr(0, n.name().rfind('/'));
      for (const auto& input : n.input()) {
        const auto found = initialisers_.find(input);
        if (found == initialisers_.end() || found->second->dims_size() < 2) continue;
        const std::string& first = readers.try_emplace(input, scope).first->second;
        if (scope != first && uncounted(scope) == uncounted(first)) layer_of_scope_.try_emplace(scope, first);
      }
    }
    layer_of_scope_.try_emplace("", "");  // now they are known
  }
  const std::string scope = node.substr(0, node.rfind('/'));
  const auto known = layer_of_scope_.find(scope);
  return known == layer_of_scope_.end() ? scope : known->second;
}

Result<std::string> Mapper::weight(const Value& v, const std::string& slot, bool trained) {
  if (!v.is_const()) return refused(fmt::format("its {} is computed from the inputs", slot));
  if (!v.fixed()) return refused(fmt::format("its {} depends on the batch size", slot));
  if (!v.at[0]->is_float()) return refused(fmt::format("its {} holds integers", slot));
  const Array& array = *v.at[0];
  if (trained && array.has_origins() && !fits_slot(array))
    return cannot_train(array, fmt::format("the {} of {} is made of parts of it", slot, graph.source));
  const std::string name = declared(v, v.at[0], weight_name(v, slot), slot, trained && !source(v).empty());
  note_reader(name);
  return name;
}

Result<Value> Mapper::rows_first(const Value& v) {
  if (!v.is_graph() || v.layout.n == kNone) return refused("its first input is a constant");
  Layout out = v.layout;
  if (v.layout.n == kAdded) {
    if (v.layout.rank() == 0 || v.layout.dims[0] != 1)
      return refused("a row of the file has several samples");
    out.n = 0;
    return reshaped(v, out);
  }
  if (v.layout.n != 0 || !v.layout.plain()) return refused("the batch is not alone on axis 0");
  return v;
}

Value Mapper::as_before(const Value& rows, const Value& like) {
  if (like.layout.n >= 0) return rows;
  Layout out = rows.layout;
  out.n = kAdded;
  return reshaped(rows, out);
}

Result<ArrayPtr> Mapper::fixed(const Call& call, size_t input, const char* what) const {
  const Value& v = call.in(input);
  if (!v.is_const()) return refused(fmt::format("its {} is computed from the inputs", what));
  if (!v.fixed()) return refused(fmt::format("its {} depends on the batch size", what));
  return v.at[0];
}

Result<Ints> Mapper::fixed_ints(const Call& call, size_t input, const char* what) const {
  TRY(const ArrayPtr array, fixed(call, input, what));
  if (array->is_float()) return refused(fmt::format("its {} are no integers", what));
  return array->ints;
}

Result<double> Mapper::fixed_real(const Call& call, size_t input, const char* what) const {
  TRY(const ArrayPtr array, fixed(call, input, what));
  if (array->size() != 1) return refused(fmt::format("its {} is no scalar", what));
  return array->real(0);
}

Shape Mapper::shape_at(const Value& v, int which) const {
  if (v.is_const()) return v.at[which]->shape;
  Shape shape = v.layout.dims;
  if (v.layout.n >= 0) shape[static_cast<size_t>(v.layout.n)] *= sizes[which];
  return shape;
}

Result<Layout> Mapper::regrouped(const Layout& from, const Shape& a, const Shape& b) const {
  Layout out{.dims = a, .n = from.n};
  if (from.n < 0) {
    if (a != b) return refused("a size depends on the batch size");
    return out;
  }
  int64_t outer = from.before, inner = from.after;
  for (size_t i = 0; i < from.rank(); ++i) {
    if (static_cast<int>(i) < from.n) outer *= from.dims[i];
    if (static_cast<int>(i) > from.n) inner *= from.dims[i];
  }
  std::optional<Layout> best;
  int64_t ahead = 1;
  for (size_t j = 0; j < a.size() && ahead <= outer; ahead *= a[j], ++j) {
    int64_t behind = 1;
    for (size_t i = j + 1; i < a.size(); ++i) behind *= a[i];
    if (a[j] % sizes[0] != 0 || b[j] % sizes[1] != 0 || a[j] / sizes[0] != b[j] / sizes[1]) continue;
    const int64_t factor = a[j] / sizes[0];
    if (outer % ahead != 0 || inner % behind != 0 || outer / ahead * (inner / behind) != factor) continue;
    const Layout one{.dims = a, .n = static_cast<int>(j), .before = outer / ahead, .after = inner / behind};
    if (!best || one.plain() > best->plain() || (one.before == 1 && best->before > 1)) best = one;
  }
  if (!best) {
    return refused(fmt::format("a reshape from {} to {} cuts the batch (of {})", tensor::to_text(from.dims),
                               tensor::to_text(a), sizes[0]));
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (static_cast<int>(i) != best->n && a[i] != b[i]) return refused("a size depends on the batch size");
  }
  best->dims[static_cast<size_t>(best->n)] = best->before * best->after;
  return *best;
}

const std::string& Mapper::current_input(size_t i) const { return current_->input(static_cast<int>(i)); }

bool Mapper::read_once(const std::string& onnx) const {
  const auto found = readers_.find(scope_ + onnx);
  return found != readers_.end() && found->second == 1;
}

Value* Mapper::any_input() {
  for (auto& [name, value] : values_) {
    if (value.is_graph() && value.name == first_input_) return &value;
  }
  return nullptr;
}

}  // namespace bakeoff::onnx
