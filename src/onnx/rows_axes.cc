// Ops along axes: reductions, softmax, places of maxima, running sums. ir_axis() turns axes of ONNX into
// those of the IR. The axis of the batch cannot be reduced.
//
// The IR has no arithmetic with integers. OneHot and Hardmax therefore look up rows of a frozen table, an
// identity matrix, by embedding.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "onnx/rows.h"

namespace bakeoff::onnx {

Result<Value> reduced(Mapper& m, const Value& x, const std::set<size_t>& axes, bool keep,
                      const std::string& op) {
  if (op == "prod" && axes.size() > 1) {  // over one axis at a time
    Value made = x;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      TRY(made, reduced(m, made, {*axis}, keep, op));
    }
    return made;
  }
  Layout out = x.layout;
  out.dims.clear();
  Ints places;
  for (size_t i = 0; i < x.layout.rank(); ++i) {
    if (!axes.contains(i)) {
      if (x.layout.holds_batch(i)) out.n = static_cast<int>(out.dims.size());
      out.dims.push_back(x.layout.dims[i]);
      continue;
    }
    if (x.layout.holds_batch(i)) return refused("reduces over the batch");
    places.push_back(ir_axis(x.layout, i));
    if (keep) out.dims.push_back(1);
  }
  return m.make(
      op, {x.name}, out,
      {{op == "prod" ? "axis" : "axes", numbers_text(places)}, {"keepdims", keep ? "true" : "false"}});
}

namespace {

Result<Ints> axes_of(Mapper& m, const Call& call, int64_t since) {
  if (call.opset < since) return call.integers("axes");
  if (!call.has(1)) return Ints{};
  return m.fixed_ints(call, 1, "axes");
}

// Reduce...: `before` on every element, `after` on the result; "" is nothing.
Result<Values> reduce(Mapper& m, const Call& call, const char* op, const char* before = "",
                      const char* after = "") {
  CHECK_OK(want_graph(call));
  Value x = call.in(0);
  const bool whole = x.kind == Kind::kInt && *before == '\0' && *after == '\0' && std::string(op) != "mean" &&
                     std::string(op) != "logsumexp";
  if (whole) {
    TRY(x, as_floats(m, x));
  }
  if (x.kind != Kind::kFloat) return refused("computes with integers or booleans that depend on the inputs");
  TRY(const Ints axes, axes_of(m, call, call.op() == "ReduceSum" ? 13 : 18));
  const bool keep = call.integer("keepdims", 1) != 0;
  std::set<size_t> places;
  for (const int64_t axis : axes) {
    TRY(const size_t at, axis_of(axis, x.layout.rank()));
    places.insert(at);
  }
  if (axes.empty()) {
    if (call.integer("noop_with_empty_axes", 0) == 0) {
      for (size_t i = 0; i < x.layout.rank(); ++i) places.insert(i);
    }
  }
  if (*before != '\0') {
    TRY(x, m.elementwise(before, {x}));
  }
  if (!places.empty()) {
    TRY(x, reduced(m, x, places, keep, op));
  }
  if (*after != '\0') {
    TRY(x, m.elementwise(after, {x}));
  }
  return Values{whole ? as_integers(m, x) : x};
}

// An op along one axis of a value of the graph; before opset 13 the axes from this one on are one.
template <typename Along>
Result<Values> along_axis(Mapper& m, const Call& call, const Along& along) {
  CHECK_OK(want_graph(call));
  const Value& x = call.in(0);
  const size_t rank = x.layout.rank();
  TRY(const size_t axis, axis_of(call.integer("axis", call.opset < 13 ? 1 : -1), rank));
  const bool flat = call.opset < 13 && axis + 1 < rank;
  for (size_t i = axis; i < (flat ? rank : axis + 1); ++i) {
    if (x.layout.holds_batch(i)) return refused("goes over the batch");
  }
  if (!flat) {
    TRY(const Value made, along(x, axis));
    return Values{made};
  }
  Layout joined_axes = x.layout;
  joined_axes.dims.resize(axis + 1);
  for (size_t i = axis + 1; i < rank; ++i) joined_axes.dims[axis] *= x.layout.dims[i];
  TRY(const Value made, along(m.reshaped(x, joined_axes), axis));
  return Values{m.reshaped(made, x.layout)};
}

Result<Values> softmax(Mapper& m, const Call& call, const char* op) {
  return along_axis(m, call, [&](const Value& x, size_t axis) -> Result<Value> {
    return m.make(op, {x.name}, x.layout, {{"axis", std::to_string(ir_axis(x.layout, axis))}});
  });
}

// The places of the first largest elements; the axis goes.
Value places_of_largest(Mapper& m, const Value& x, size_t axis) {
  Layout gone = x.layout;
  gone.dims.erase(gone.dims.begin() + static_cast<int64_t>(axis));
  if (gone.n > static_cast<int>(axis)) --gone.n;
  Value made =
      m.make("argmax", {x.name}, gone, {{"axis", std::to_string(ir_axis(x.layout, axis))}}, {}, Kind::kInt);
  made.bound = x.layout.dims[axis];
  return made;
}

// A row of the table for each integer: the last axis.
Result<Value> rows_of_table(Mapper& m, const Value& ids, ArrayPtr table) {
  Layout out = ids.layout;
  out.dims.push_back(table->shape[1]);
  TRY(const std::string name, m.frozen(m.graph.base + ".table", std::move(table)));
  return m.make("embedding", {ids.name}, out, {}, {{"weight", name}});
}

constexpr int64_t kMostMarks = 1024;  // their table is the square of it

// `on` at the place that each integer names, `off` at the others.
ArrayPtr marks(int64_t size, double off, double on) {
  auto table = std::make_shared<Array>(*filled(Kind::kFloat, {size, size}, off));
  for (int64_t i = 0; i < size; ++i) table->reals[static_cast<size_t>(i * (size + 1))] = on;
  return table;
}

// The last axis before axis `to`.
Value last_to(Mapper& m, const Value& v, size_t to) {
  Ints perm(v.layout.rank() - 1);
  std::iota(perm.begin(), perm.end(), 0);
  perm.insert(perm.begin() + static_cast<int64_t>(to), static_cast<int64_t>(perm.size()));
  return m.transposed_value(v, perm);
}

Result<Values> hard_max(Mapper& m, const Call& call) {
  return along_axis(m, call, [&](const Value& x, size_t axis) -> Result<Value> {
    const int64_t size = x.layout.dims[axis];
    if (size > kMostMarks) return refused(fmt::format("chooses among more than {}", kMostMarks));
    TRY(const Value chosen, rows_of_table(m, places_of_largest(m, x, axis), marks(size, 0, 1)));
    return last_to(m, chosen, axis);
  });
}

// Numbers without their fraction, also counted from the end; beyond the depth nothing is marked.
Result<Value> marks_of_floats(Mapper& m, const Value& x, double depth, const Array& values) {
  TRY(const Value size, m.elementwise("abs", {x}));
  TRY(const Value low, m.elementwise("floor", {size}));
  TRY(const Value sign, m.elementwise("sign", {x}));
  TRY(Value whole, m.elementwise("mul", {sign, low}));
  whole = with_axis(m, whole, x.layout.rank());
  Array ramp{.kind = Kind::kFloat, .shape = {static_cast<int64_t>(depth)}};
  for (int i = 0; i < static_cast<int>(depth); ++i) ramp.reals.push_back(i);
  const Value places = m.constant(std::make_shared<Array>(std::move(ramp)));
  TRY(const Value here, m.elementwise("equal", {whole, places}, {}, Kind::kBool));
  TRY(const Value moved, m.scalar_op("add", whole, depth));
  TRY(const Value from_end, m.elementwise("equal", {moved, places}, {}, Kind::kBool));
  TRY(const Value either, m.elementwise("logical_or", {here, from_end}, {}, Kind::kBool));
  return as_numbers(m, either, values.real(1), values.real(0));
}

Result<Values> one_hot(Mapper& m, const Call& call) {
  const Value& ids = call.in(0);
  if (!ids.is_graph())
    return refused("computes with constants alone, in a way that is not computed at import");
  if (ids.kind == Kind::kBool) return refused("its indices are no numbers");
  TRY(const double depth, m.fixed_real(call, 1, "depth"));
  TRY(const ArrayPtr values, m.fixed(call, 2, "values"));
  if (values->size() != 2 || ids.layout.rank() == 0) return refused("its sizes do not fit");
  if (!(depth >= 1 && depth <= kMostMarks))
    return refused(fmt::format("its depth is not between 1 and {}", kMostMarks));
  const auto rank = static_cast<int64_t>(ids.layout.rank());
  TRY(const size_t axis, axis_of(call.integer("axis", -1), static_cast<size_t>(rank + 1)));
  if (ids.kind == Kind::kFloat) {
    TRY(const Value made, marks_of_floats(m, ids, depth, *values));
    return Values{last_to(m, made, axis)};
  }
  TRY(const Value made,
      rows_of_table(m, ids, marks(static_cast<int64_t>(depth), values->real(0), values->real(1))));
  m.notes.insert("OneHot: indices count from 0; negative ones are refused");
  return Values{last_to(m, made, axis)};
}

Result<Values> cumsum(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  TRY(const double number, m.fixed_real(call, 1, "axis"));
  const Value& x = call.in(0);
  TRY(const size_t axis, axis_of(static_cast<int64_t>(number), x.layout.rank()));
  if (x.layout.holds_batch(axis)) return refused("goes over the batch");
  const bool reverse = call.integer("reverse", 0) != 0;
  Value v = reverse ? flipped(m, x, axis) : x;
  const Value turned = v;
  v = m.make("cumsum", {v.name}, v.layout, {{"axis", std::to_string(ir_axis(v.layout, axis))}});
  if (call.integer("exclusive", 0) != 0) {
    TRY(v, m.elementwise("sub", {v, turned}));
  }
  return Values{reverse ? flipped(m, v, axis) : v};
}

// The product of all elements up to each, spelled out: a product for each place.
Result<Values> cumprod(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  TRY(const double number, m.fixed_real(call, 1, "axis"));
  const Value& whole = call.in(0);
  TRY(const size_t axis, axis_of(static_cast<int64_t>(number), whole.layout.rank()));
  const int64_t size = whole.layout.dims[axis];
  if (whole.layout.holds_batch(axis)) return refused("goes over the batch");
  if (whole.kind != Kind::kFloat) return refused("computes with integers that depend on the inputs");
  if (size > 64) return refused("multiplies more than 64 places");
  const bool reverse = call.integer("reverse", 0) != 0, exclusive = call.integer("exclusive", 0) != 0;
  Values products;
  for (int64_t i = 0; i + (exclusive ? 1 : 0) < size; ++i) {
    const int64_t at = reverse ? size - 1 - i : i;
    Value next = cut(m, whole, axis, at, at + 1, 1);
    if (i > 0) {
      TRY(next, m.elementwise("mul", {products.back(), next}));
    }
    products.push_back(next);
  }
  if (exclusive) {
    Shape ones = m.shape_at(whole, 0);
    for (size_t i = 0; i < ones.size(); ++i) ones[i] = i == axis || whole.layout.holds_batch(i) ? 1 : ones[i];
    products.insert(products.begin(), m.constant(filled(Kind::kFloat, ones, 1)));
  }
  if (size == 1 && exclusive) return refused("multiplies nothing");
  if (reverse) std::reverse(products.begin(), products.end());
  TRY(const Value made, concatenated(m, products, static_cast<int64_t>(axis)));
  return Values{made};
}

// Numbers that are the larger the later an element that equals the largest one stands, and 0 at the others.
Result<Value> latest(Mapper& m, const Value& x, size_t axis) {
  TRY(const Value top, reduced(m, x, {axis}, true, "max"));
  TRY(const Value equal, m.elementwise("equal", {x, top}, {}, Kind::kBool));
  Array ramp{.kind = Kind::kFloat, .shape = Shape(x.layout.rank(), 1)};
  ramp.shape[axis] = x.layout.dims[axis];
  for (int64_t i = 0; i < x.layout.dims[axis]; ++i) ramp.reals.push_back(static_cast<double>(i + 1));
  return m.elementwise("where",
                       {equal, m.constant(std::make_shared<Array>(std::move(ramp))), m.constant(of_real(0))});
}

// The largest elements of the last axis one after the other, and their places as floats.
Result<Values> in_order(Mapper& m, const Value& x, int64_t count, bool largest, bool wants_places) {
  const size_t axis = x.layout.rank() - 1;
  const int64_t size = x.layout.dims[axis];
  Array unit{.kind = Kind::kFloat, .shape = {size, size}}, ramp{.kind = Kind::kFloat, .shape = {size}};
  for (int64_t i = 0; i < size * size; ++i) unit.reals.push_back(i % (size + 1) == 0 ? 1 : 0);
  for (int64_t i = 0; i < size; ++i) ramp.reals.push_back(static_cast<double>(i));
  const auto table = std::make_shared<Array>(std::move(unit));
  const Value steps = m.constant(std::make_shared<Array>(std::move(ramp)));
  Values parts[2];
  Value left = x;
  if (!largest) {
    TRY(left, m.elementwise("neg", {x}));
  }
  for (int64_t i = 0; i < count; ++i) {
    TRY(const Value hot, rows_of_table(m, places_of_largest(m, left, axis), table));
    TRY(const Value found, m.elementwise("less", {m.constant(of_real(0.5)), hot}, {}, Kind::kBool));
    TRY(const Value alone, m.elementwise("where", {found, x, m.constant(of_real(0))}));
    TRY(const Value number, reduced(m, alone, {axis}, true, "sum"));
    parts[0].push_back(number);
    if (wants_places) {
      TRY(const Value step, m.elementwise("mul", {hot, steps}));
      TRY(const Value place, reduced(m, step, {axis}, true, "sum"));
      parts[1].push_back(place);
    }
    TRY(left, m.elementwise("where", {found, m.constant(of_real(-3e38)), left}));
  }
  Values made;
  for (const Values& all : parts) {
    if (all.empty()) continue;
    TRY(const Value joined, concatenated(m, all, static_cast<int64_t>(axis)));
    made.push_back(joined);
  }
  return made;
}

constexpr int64_t kMostSorted = 32;

Result<Values> top_k(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  const Value& x = call.in(0);
  if (x.kind != Kind::kFloat) return refused("computes with integers that depend on the inputs");
  const size_t rank = x.layout.rank();
  TRY(const size_t axis, axis_of(call.integer("axis", -1), rank));
  int64_t count = call.integer("k", 0);
  if (call.opset >= 10) {
    TRY(const double number, m.fixed_real(call, 1, "k"));
    count = static_cast<int64_t>(number);
  }
  if (x.layout.holds_batch(axis)) return refused("goes over the batch");
  if (count < 1 || count > std::min(kMostSorted, x.layout.dims[axis]))
    return refused(fmt::format("finds {} places in order; at most {} are imported", count, kMostSorted));
  Ints turn;
  for (size_t i = 0; i < rank; ++i) turn.push_back(static_cast<int64_t>(i));
  std::swap(turn[axis], turn[rank - 1]);
  if (x.layout.holds_batch(rank - 1) && axis != rank - 1)
    return refused("goes along an axis before the batch");
  const Value turned = axis == rank - 1 ? x : m.transposed_value(x, turn);
  TRY(Values made, in_order(m, turned, count, call.integer("largest", 1) != 0, call.wants(1)));
  for (Value& one : made) {
    if (axis != rank - 1) one = m.transposed_value(one, turn);
  }
  if (made.size() < 2) return Values{made[0], Value{}};
  made[1] = as_integers(m, made[1]);
  made[1].bound = x.layout.dims[axis];
  return made;
}

Result<Values> arg_max(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  Value x = call.in(0);
  if (x.kind != Kind::kFloat) return refused("computes with integers that depend on the inputs");
  TRY(const size_t axis, axis_of(call.integer("axis", 0), x.layout.rank()));
  if (x.layout.holds_batch(axis)) return refused("goes over the batch");
  if (call.op() == "ArgMin") {
    TRY(x, m.elementwise("neg", {x}));
  }
  Layout kept = x.layout;
  kept.dims[axis] = 1;
  if (call.integer("select_last_index", 0) != 0 && x.layout.dims[axis] > 1) {
    TRY(x, latest(m, x, axis));
  }
  const Value made = places_of_largest(m, x, axis);
  return Values{call.integer("keepdims", 1) != 0 ? m.reshaped(made, kept) : made};
}

Result<Values> trilu(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  const Value& x = call.in(0);
  int64_t k = 0;
  if (call.has(1)) {
    TRY(const double number, m.fixed_real(call, 1, "diagonal"));
    k = static_cast<int64_t>(number);
  }
  const size_t rank = x.layout.rank();
  if (rank < 2 || x.layout.n >= static_cast<int>(rank) - 2) return refused("needs matrices in each row");
  const int64_t h = x.layout.dims[rank - 2], w = x.layout.dims[rank - 1];
  const bool upper = call.integer("upper", 1) != 0;
  Array mask{.kind = Kind::kFloat, .shape = {h, w}};
  for (int64_t i = 0; i < h; ++i) {
    for (int64_t j = 0; j < w; ++j) mask.reals.push_back((upper ? j - i >= k : j - i <= k) ? 1 : 0);
  }
  TRY(Value made, m.elementwise("mul", {x, m.constant(std::make_shared<Array>(std::move(mask)))}));
  return Values{made};
}

#define BAKEOFF_REDUCE(...) +[](Mapper& m, const Call& call) { return reduce(m, call, __VA_ARGS__); }

}  // namespace

Rows axis_rows() {
  return {
      {"ReduceSum", BAKEOFF_REDUCE("sum")},
      {"ReduceMean", BAKEOFF_REDUCE("mean")},
      {"ReduceMax", BAKEOFF_REDUCE("max")},
      {"ReduceMin", BAKEOFF_REDUCE("min")},
      {"ReduceProd", BAKEOFF_REDUCE("prod")},
      {"ReduceLogSumExp", BAKEOFF_REDUCE("logsumexp")},
      {"ReduceL1", BAKEOFF_REDUCE("sum", "abs")},
      {"ReduceL2", BAKEOFF_REDUCE("sum", "square", "sqrt")},
      {"ReduceSumSquare", BAKEOFF_REDUCE("sum", "square")},
      {"ReduceLogSum", BAKEOFF_REDUCE("sum", "", "log")},
      {"Softmax", +[](Mapper& m, const Call& c) { return softmax(m, c, "softmax"); }},
      {"LogSoftmax", +[](Mapper& m, const Call& c) { return softmax(m, c, "log_softmax"); }},
      {"Hardmax", hard_max},
      {"OneHot", one_hot},
      {"CumSum", cumsum},
      {"CumProd", cumprod},
      {"ArgMax", arg_max},
      {"ArgMin", arg_max},
      {"TopK", top_k},
      {"Trilu", trilu},
  };
}

}  // namespace bakeoff::onnx
