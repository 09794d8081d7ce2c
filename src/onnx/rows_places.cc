// Ops that take or put numbers at places: GatherND, GatherElements, ScatterND, ScatterElements. Places that the inputs
// name are `gather` and `scatter_add`; of those that constants name no op is left:
//
// Of constants they are computed at import. With values of the graph, the op is computed at import too, but on the places
// of the numbers instead of the numbers: what comes out says for each place of the result where its number is to be taken
// from. Rows of the batch have to stay rows, and all rows have to take from the same places.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

constexpr int64_t kMostPlaces = int64_t{1} << 22;

// How a number is put to one that is there: in its place, or as the attribute `reduction` says.
template <typename Number>
Number combined(const std::string& rule, Number there, Number fresh) {
  if (rule == "add") return there + fresh;
  if (rule == "mul") return there * fresh;
  if (rule == "max") return std::max(there, fresh);
  return rule == "min" ? std::min(there, fresh) : fresh;
}

void put(const std::string& rule, Array& to, size_t at, const Array& from, size_t i) {
  if (to.is_float())
    to.reals[at] = combined(rule, to.reals[at], from.reals[i]);
  else if (rule == "none")
    to.ints[at] = from.ints[i];
  else
    to.ints[at] = static_cast<int64_t>(
        combined(rule, static_cast<uint64_t>(to.ints[at]), static_cast<uint64_t>(from.ints[i])));
}

int64_t product_of(const Shape& shape, size_t begin, size_t end) {
  return std::accumulate(shape.begin() + static_cast<int64_t>(begin),
                         shape.begin() + static_cast<int64_t>(end), int64_t{1}, std::multiplies<>());
}

// The place that `k` indices name in axes from `first` on.
Result<int64_t> place_of(const Shape& shape, size_t first, const int64_t* indices, size_t k) {
  int64_t place = 0;
  for (size_t i = 0; i < k; ++i) {
    const int64_t size = shape[first + i], at = indices[i] < 0 ? indices[i] + size : indices[i];
    if (at < 0 || at >= size) return refused("an index is out of range");
    place = place * size + at;
  }
  return place;
}

Status want_indices(const Arrays& in, size_t inputs) {
  if (in.size() < inputs || std::ranges::any_of(in, [](const ArrayPtr& a) { return a == nullptr; }))
    return refused("an input is missing");
  if (in[1]->is_float() || in[1]->shape.empty() || in[0]->shape.empty())
    return refused("its indices do not fit");
  if (inputs == 3 && in[0]->is_float() != in[2]->is_float()) return refused("its inputs do not fit");
  return Done{};
}

Result<Arrays> scatter_nd(const Call& call, const Arrays& in) {
  CHECK_OK(want_indices(in, 3));
  const Shape& shape = in[0]->shape;
  const auto k = static_cast<size_t>(in[1]->shape.back());
  if (k < 1 || k > shape.size()) return refused("its indices do not fit");
  const auto each = static_cast<size_t>(product_of(shape, k, shape.size()));
  if (in[1]->size() / k * each != in[2]->size()) return refused("its sizes do not fit");
  auto made = std::make_shared<Array>(*in[0]);
  for (size_t i = 0; i < in[1]->size() / k; ++i) {
    TRY(const int64_t place, place_of(shape, 0, &in[1]->ints[i * k], k));
    for (size_t j = 0; j < each; ++j)
      put(call.text("reduction", "none"), *made, static_cast<size_t>(place) * each + j, *in[2], i * each + j);
  }
  return Arrays{made};
}

Result<Arrays> gather_nd(const Call& call, const Arrays& in) {
  CHECK_OK(want_indices(in, 2));
  const Shape &shape = in[0]->shape, &at = in[1]->shape;
  const auto batch = static_cast<size_t>(call.integer("batch_dims", 0));
  const auto k = static_cast<size_t>(at.back());
  if (batch >= at.size() || k < 1 || batch + k > shape.size() ||
      !std::equal(at.begin(), at.begin() + static_cast<int64_t>(batch), shape.begin()))
    return refused("its sizes do not fit");
  const int64_t groups = product_of(at, 0, batch), rows = product_of(at, batch, at.size() - 1);
  const auto each = static_cast<size_t>(product_of(shape, batch + k, shape.size()));
  const auto group = static_cast<size_t>(product_of(shape, batch, shape.size()));
  Shape out(at.begin(), at.end() - 1);
  out.insert(out.end(), shape.begin() + static_cast<int64_t>(batch + k), shape.end());
  std::vector<size_t> from;
  for (int64_t i = 0; i < groups * rows; ++i) {
    TRY(const int64_t place, place_of(shape, batch, &in[1]->ints[static_cast<size_t>(i) * k], k));
    for (size_t j = 0; j < each; ++j)
      from.push_back(static_cast<size_t>(i / rows) * group + static_cast<size_t>(place) * each + j);
  }
  return Arrays{picked(*in[0], out, from)};
}

// Of the elements of `at`: the places in `shape` that they name along an axis.
Result<std::vector<size_t>> places_along(const Call& call, const Shape& shape, const Array& at) {
  TRY(const size_t axis, axis_of(call.integer("axis", 0), shape.size()));
  if (at.shape.size() != shape.size()) return refused("its sizes do not fit");
  std::vector<size_t> places;
  for (size_t i = 0; i < at.size(); ++i) {
    Ints place(shape.size());
    auto rest = static_cast<int64_t>(i);
    for (size_t a = shape.size(); a-- > 0;) place[a] = rest % at.shape[a], rest /= at.shape[a];
    place[axis] = at.ints[i];
    for (size_t a = 0; a < shape.size(); ++a) {
      if (a != axis && place[a] >= shape[a]) return refused("its sizes do not fit");
    }
    TRY(const int64_t found, place_of(shape, 0, place.data(), place.size()));
    places.push_back(static_cast<size_t>(found));
  }
  return places;
}

Result<Arrays> gather_elements(const Call& call, const Arrays& in) {
  CHECK_OK(want_indices(in, 2));
  TRY(const auto places, places_along(call, in[0]->shape, *in[1]));
  return Arrays{picked(*in[0], in[1]->shape, places)};
}

Result<Arrays> scatter_elements(const Call& call, const Arrays& in) {
  CHECK_OK(want_indices(in, 3));
  TRY(const auto places, places_along(call, in[0]->shape, *in[1]));
  if (in[2]->size() != places.size()) return refused("its sizes do not fit");
  auto made = std::make_shared<Array>(*in[0]);
  for (size_t i = 0; i < places.size(); ++i) put(call.text("reduction", "none"), *made, places[i], *in[2], i);
  return Arrays{made};
}

const std::map<std::string, Fold>& moves() {
  static const std::map<std::string, Fold> all = {{"ScatterND", scatter_nd},
                                                  {"ScatterElements", scatter_elements},
                                                  {"Scatter", scatter_elements},
                                                  {"GatherND", gather_nd},
                                                  {"GatherElements", gather_elements}};
  return all;
}

// ---- values of the graph

// Sizes in the order of the IR's value, rows first, with N between the parts that it is merged with.
Shape apart(const Layout& layout, int64_t rows) {
  if (layout.n < 0) {
    Shape shape = layout.dims;
    shape.insert(shape.begin(), 1);
    return shape;
  }
  const auto n = layout.dims.begin() + layout.n;
  Shape shape = {rows};
  shape.insert(shape.end(), layout.dims.begin(), n);
  shape.insert(shape.end(), {layout.before, layout.after});
  shape.insert(shape.end(), n + 1, layout.dims.end());
  return shape;
}

// The numbers of places, rows x width in the order of the IR, as ONNX lays them out; or back.
ArrayPtr turned(const Array& places, const Layout& layout, int64_t rows, const Shape& in_file, bool back) {
  Ints perm(apart(layout, rows).size());
  std::iota(perm.begin(), perm.end(), 0);
  if (layout.n >= 0) std::rotate(perm.begin(), perm.begin() + 1, perm.begin() + layout.n + 2);
  if (!back) return shaped(*transposed(*shaped(places, apart(layout, rows)), perm), in_file);
  Ints inverse(perm.size());
  Shape file(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    file[i] = apart(layout, rows)[static_cast<size_t>(perm[i])];
  }
  return transposed(*shaped(places, file), inverse);
}

// Where each place of a row of the result takes its number from: a place in the joined rows of all values. Numbers of
// rows are counted from 1; 0 stands for what all rows share.
Result<Ints> sources_of(Mapper& m, const Call& call, const Values& values, const Layout* out, int which) {
  int64_t width = 0, offset = 0;
  for (const Value& v : values) width += tensor::elements(v.layout.dims);
  Arrays arrays(std::max<size_t>(call.inputs.size(), 2));
  for (size_t i = 0; i < values.size(); ++i) {
    const Layout& layout = values[i].layout;
    const int64_t own = tensor::elements(layout.dims), rows = layout.n < 0 ? 1 : m.sizes[which];
    Array places{.kind = Kind::kInt, .shape = {rows * own}};
    for (int64_t k = 0; k < rows * own; ++k)
      places.ints.push_back(k % own + offset + (layout.n == kNone ? 0 : (k / own + 1) * width));
    arrays[i == 0 ? 0 : 2] = turned(places, layout, rows, m.shape_at(values[i], which), false);
    offset += own;
  }
  arrays[1] = call.in(1).at[which];
  TRY(const Arrays moved, moves().at(call.op())(call, arrays));
  if (out == nullptr) return moved[0]->shape;
  const int64_t rows = out->n < 0 ? 1 : m.sizes[which];
  if (static_cast<int64_t>(moved[0]->size()) != tensor::elements(out->dims) * rows)
    return refused("its result has no rows of the batch");
  const ArrayPtr laid = turned(*moved[0], *out, rows, {}, true);
  const size_t each = laid->size() / static_cast<size_t>(rows);
  Ints made;
  for (size_t k = 0; k < laid->size(); ++k) {
    const int64_t row = laid->ints[k] / width, place = laid->ints[k] % width;
    if (row != 0 && row != static_cast<int64_t>(k / each) + 1) return refused("mixes rows of the batch");
    if (k < each)
      made.push_back(place);
    else if (made[k % each] != place)
      return refused("rows of the batch are taken from different places");
  }
  return made;
}

// Where N lies in what is gathered: on the first axis that has its sizes.
Result<Layout> gathered_layout(Mapper& m, const Call& call, const Values& values) {
  TRY(const Shape a, sources_of(m, call, values, nullptr, 0));
  TRY(const Shape b, sources_of(m, call, values, nullptr, 1));
  Layout out{.dims = a, .n = std::min(values[0].layout.n, kAdded)};
  for (size_t i = 0; i < a.size() && values[0].layout.n >= 0 && out.n < 0; ++i) {
    if (a[i] != m.sizes[0] || b[i] != m.sizes[1]) continue;
    out.n = static_cast<int>(i);
    out.dims[i] = 1;
  }
  if (values[0].layout.n >= 0 && out.n < 0) return refused("its result has no rows of the batch");
  return out;
}

bool all_zero(const Value& v) {
  return v.is_const() && v.fixed() && v.at[0]->is_float() &&
         std::ranges::all_of(v.at[0]->reals, [](double x) { return x == 0; });
}

// Places that rows of the batch have of their own, along one axis: in front of it stand the axes that they share with
// what is taken or put. Where they are repeated along an axis, that axis stands behind.
Result<Values> by_named_places(Mapper& m, const Call& call) {
  const bool nd = call.op() == "GatherND", puts = call.op() == "ScatterElements";
  if (call.op() == "ScatterND" || call.op() == "Scatter" || call.in(1).kind != Kind::kInt ||
      puts != (call.text("reduction", "none") == "add"))
    return refused("its indices depend on the inputs");
  const Value& own = call.in(puts ? 2 : 0);
  TRY(Value x, m.rows_first(own));
  TRY(Value ids, m.rows_first(call.in(1)));
  if (nd) {
    Layout fewer = ids.layout;
    fewer.dims.pop_back();
    if (ids.layout.dims.back() != 1 ||
        call.integer("batch_dims", 0) + 1 != static_cast<int64_t>(fewer.rank()))
      return refused("its indices depend on the inputs, and lie along several axes");
    ids = m.reshaped(ids, fewer);
  }
  TRY(const size_t axis,
      nd ? Result<size_t>(ids.layout.rank() - 1) : axis_of(call.integer("axis", 0), x.layout.rank()));
  const Shape base = m.shape_at(puts ? call.in(0) : x, 0);
  if (axis == 0 || base.size() != x.layout.rank() ||
      (nd ? axis >= base.size() : ids.layout.rank() != base.size()))
    return refused("it takes or puts rows of the batch, or its sizes do not fit");
  for (size_t a = 1; a < base.size(); ++a) {
    const int64_t size = x.layout.dims[a];
    if (a != axis && (base[a] != size || ((!nd || a < axis) && ids.layout.dims[a] != size)))
      return refused("its indices name a part of an axis");
  }
  if (const GraphNode* wide = m.graph.producer(ids.name); !nd && wide != nullptr && wide->op == "expand") {
    ids.name = wide->inputs[0];
    const Shape& shape = m.graph.shape(ids.name);
    for (size_t a = 1; a < shape.size(); ++a) ids.layout.dims[a] = shape[a];
  }
  Ints order, behind;
  for (size_t a = 0; a < base.size(); ++a) {
    const bool shared = a == 0 || (nd ? a < axis : ids.layout.dims[a] > 1);
    if (a != axis) (shared ? order : behind).push_back(static_cast<int64_t>(a));
  }
  const size_t at = order.size();
  order.push_back(static_cast<int64_t>(axis));
  order.insert(order.end(), behind.begin(), behind.end());
  x = m.transposed_value(x, order);
  if (!nd) ids = m.transposed_value(ids, order);
  Layout lead = ids.layout, out = x.layout;
  lead.dims.resize(at + 1);
  ids = m.reshaped(ids, lead);
  out.dims[at] = puts ? base[axis] : lead.dims[at];
  Attributes attributes = {{"axis", std::to_string(at)}};
  if (puts) attributes.emplace_back("size", std::to_string(out.dims[at]));
  Value made = m.make(puts ? "scatter_add" : "gather", {x.name, ids.name}, out, attributes);
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  made = m.as_before(m.transposed_value(made, back), own);
  if (!puts || all_zero(call.in(0))) return Values{made};
  TRY(made, m.elementwise("add", {call.in(0), made}));
  return Values{made};
}

Result<Values> by_places(Mapper& m, const Call& call) {
  if (call.in(1).is_graph()) return by_named_places(m, call);
  if (!call.in(1).is_const() || call.in(1).at[0]->is_float())
    return refused("its indices depend on the inputs");
  if (call.text("reduction", "none") != "none") return refused("it combines numbers (reduction)");
  Values values;
  for (size_t i = 0; i < call.inputs.size(); i += 2) {
    Value v = call.in(i);
    if (v.is_const()) {
      TRY(v, m.as_value(v));
    }
    if (v.absent() || v.kind != Kind::kFloat) return refused("it moves integers or booleans of the graph");
    values.push_back(v);
  }
  const bool puts = values.size() > 1;
  const auto has_rows = [](const Value& v) { return v.layout.n != kNone; };
  Layout out = values[0].layout;
  if (puts && !has_rows(values[0]) && has_rows(values[1]))
    return refused("puts rows of the batch into a constant");
  if (!puts) {
    TRY(out, gathered_layout(m, call, values));
  }
  TRY(const Ints places, sources_of(m, call, values, &out, 0));
  TRY(const Ints again, sources_of(m, call, values, &out, 1));
  if (places != again) return refused("its places depend on the batch size");
  if (places.empty() || static_cast<int64_t>(places.size()) > kMostPlaces)
    return refused("it takes too many places");
  // All values as one axis, in blocks that stay together.
  int64_t block = static_cast<int64_t>(places.size()), total = 0;
  for (const Value& v : values) {
    block = std::gcd(block, tensor::elements(v.layout.dims));
    total += tensor::elements(v.layout.dims);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (i == 0 || places[i] != places[i - 1] + 1)
      block = std::gcd(std::gcd(block, places[i]), static_cast<int64_t>(i));
  }
  std::vector<std::string> names;
  const int64_t rows = has_rows(out.n == kNone ? values[0] : Value{.layout = out}) ? kBatch : 1;
  for (const Value& v : values) {
    const int64_t own = tensor::elements(v.layout.dims) / block;
    std::string name = m.graph.reshape(v.name, {has_rows(v) ? kBatch : 1, own, block});
    if (!has_rows(v) && rows == kBatch)
      name = m.graph.node("expand", {name, m.any_input()->name}, {kBatch, own, block},
                          {{"shape", numbers_text({kBatch, own, block})}});
    names.push_back(name);
  }
  const Layout whole{.dims = {total / block, block}, .n = rows == kBatch ? kAdded : kNone};
  Value all{.name = names[0], .layout = whole};
  if (puts) all = m.make("concat", names, whole, {{"axis", "1"}});
  Ints blocks;
  for (size_t i = 0; i < places.size(); i += static_cast<size_t>(block)) blocks.push_back(places[i] / block);
  TRY(const Value taken, taken_places(m, all, 0, blocks));
  return Values{Value{.name = m.graph.reshape(taken.name, ir_shape(out)), .layout = out}};
}

}  // namespace

const std::map<std::string, Fold>& place_folds() { return moves(); }

Rows place_rows() {
  Rows all;
  for (const auto& [op, fold] : moves()) all[op] = by_places;
  return all;
}

}  // namespace bakeoff::onnx
