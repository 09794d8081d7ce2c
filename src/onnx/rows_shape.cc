// Ops on shapes and places. Their targets (the shape of a Reshape, the ends of a Slice) are constants at
// two batch sizes, or the row refuses. A row of the table then finds where N went (Mapper::regrouped). It
// refuses to cut, join or repeat rows of the batch, which are independent samples in the IR.
//
// The result of Shape is a constant here, so chains of ops that compute a shape leave no node behind.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "onnx/rows.h"

namespace bakeoff::onnx {

Result<Value> with_rows(Mapper& m, const Value& v, const Layout& like) {
  if (v.absent()) return refused("an input is missing");
  if (v.is_graph() && (v.layout.n != kNone || like.n == kNone)) return v;
  Layout out = like;
  const Shape& shape = v.is_const() ? v.at[0]->shape : v.layout.dims;
  if (shape.size() != like.rank()) return refused("its inputs differ in rank");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!like.holds_batch(i)) out.dims[i] = shape[i];
  }
  TRY(std::string name, m.operand(v, out));
  if (m.graph.shape(name).empty()) {  // a number: a table of one
    TRY(const std::string table,
        m.frozen(m.graph.base + ".constant",
                 filled(Kind::kFloat, Shape(ir_shape(out).size(), 1), v.at[0]->real(0))));
    name = m.graph.node("parameter", {}, Shape(ir_shape(out).size(), 1), {}, {{"weight", table}});
  }
  if (like.n == kNone) return Value{.name = name, .layout = out};
  const Value* rows = m.any_input();
  if (rows == nullptr) return refused("there is no input");
  return m.make("expand", {name, rows->name}, out, {{"shape", numbers_text(ir_shape(out))}});
}

Result<Value> concatenated(Mapper& m, const Values& parts, int64_t along) {
  auto found =
      std::ranges::find_if(parts, [](const Value& v) { return v.is_graph() && v.layout.n != kNone; });
  if (found == parts.end()) found = std::ranges::find_if(parts, &Value::is_graph);
  if (found == parts.end()) return refused("computes with constants alone");
  Layout out = found->layout;
  TRY(const size_t axis, axis_of(along, out.rank()));
  if (out.holds_batch(axis)) return refused("joins along the batch");
  std::vector<std::string> names;
  out.dims[axis] = 0;
  for (const Value& v : parts) {
    if (v.is_const() && v.at[0]->size() == 0) continue;
    TRY(const Value one, with_rows(m, v, found->layout));
    Layout other = one.layout;
    if (other.rank() != out.rank()) return refused("its inputs differ in rank");
    out.dims[axis] += other.dims[axis];
    other.dims[axis] = out.dims[axis];
    if (other != out) return refused("its inputs differ, also outside the axis, or rows of the batch meet");
    names.push_back(one.name);
  }
  if (names.size() == 1) return *found;
  return m.make("concat", names, out, {{"axis", std::to_string(ir_axis(out, axis))}}, {}, found->kind);
}

Value cut(Mapper& m, const Value& x, size_t axis, int64_t begin, int64_t end, int64_t step) {
  Layout out = x.layout;
  out.dims[axis] = (end - begin + step - 1) / step;
  if (begin == 0 && step == 1 && end == x.layout.dims[axis]) return x;
  Value made = m.make("slice", {x.name}, out,
                      {{"axis", std::to_string(ir_axis(x.layout, axis))},
                       {"begin", std::to_string(begin)},
                       {"end", std::to_string(end)},
                       {"step", std::to_string(step)}},
                      {}, x.kind);
  made.bound = x.bound;
  return made;
}

Result<Value> taken_places(Mapper& m, const Value& x, size_t axis, const Ints& places) {
  Layout out = x.layout;
  out.dims[axis] = static_cast<int64_t>(places.size());
  TRY(const std::string stored,
      m.frozen(m.graph.base + ".places", *converted(of_ints(places), Kind::kFloat)));
  const std::string reals = m.graph.node("parameter", {}, {out.dims[axis]}, {}, {{"weight", stored}});
  const std::string whole = m.graph.node("cast", {reals}, {out.dims[axis]}, {{"to", "i32"}});
  return m.make("take", {x.name, whole}, out, {{"axis", std::to_string(ir_axis(x.layout, axis))}});
}

Value flipped(Mapper& m, const Value& x, size_t axis) {
  return m.make("flip", {x.name}, x.layout, {{"axes", std::to_string(ir_axis(x.layout, axis))}}, {}, x.kind);
}

Value repeated(Mapper& m, const Value& x, size_t axis, int64_t times) {
  if (times == 1) return x;
  Layout split = x.layout, wide = x.layout, out = x.layout;
  const auto at = split.dims.begin() + static_cast<int64_t>(axis) + 1;
  split.dims.insert(at, 1);
  wide.dims.insert(wide.dims.begin() + static_cast<int64_t>(axis) + 1, times);
  out.dims[axis] *= times;
  const Value apart = m.reshaped(x, split);
  const Value spread =
      m.make("expand", {apart.name, x.name}, wide, {{"shape", numbers_text(ir_shape(wide))}});
  return m.reshaped(spread, out);
}

namespace {

Result<Values> shape_of(Mapper& m, const Call& call) {
  const Value& x = call.in(0);
  Value made;
  for (int which = 0; which < 2; ++which) {
    Ints shape = m.shape_at(x, which);
    const auto rank = static_cast<int64_t>(shape.size());
    int64_t start = call.integer("start", 0), end = call.integer("end", rank);
    start = std::clamp(start < 0 ? start + rank : start, int64_t{0}, rank);
    end = std::clamp(end < 0 ? end + rank : end, int64_t{0}, rank);
    made.at[which] = of_ints(start < end ? Ints(shape.begin() + start, shape.begin() + end) : Ints{});
  }
  return Values{made};
}

Result<Values> size_of(Mapper& m, const Call& call) {
  Value made;
  for (int which = 0; which < 2; ++which) {
    TRY(const int64_t elements, count(m.shape_at(call.in(0), which)));
    made.at[which] = std::make_shared<Array>(Array{Kind::kInt, {}, {}, {elements}});
  }
  return Values{made};
}

// The sizes that a target with 0 (as it was) and -1 (what is left) means.
Result<Shape> resolved(const Shape& from, Ints target, bool zero_is_zero) {
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !zero_is_zero) {
      if (i >= from.size()) return refused("its shape has a 0 where the input has no axis");
      target[i] = from[i];
    }
    if (target[i] < -1 || (target[i] == -1 && open >= 0)) return refused("its shape is none");
    if (target[i] == -1)
      open = static_cast<int64_t>(i);
    else
      known *= std::max<int64_t>(target[i], 1);
    if (known > kMostElements) return refused("its shape is too large");
  }
  TRY(const int64_t all, count(from));
  if (open >= 0) target[static_cast<size_t>(open)] = known == 0 ? 0 : all / known;
  TRY(const int64_t now, count(target));
  if (now != all)
    return refused(fmt::format("a reshape of {} to {}", tensor::to_text(from), tensor::to_text(target)));
  return target;
}

Result<Values> regroup(Mapper& m, const Value& x, const Shape& a, const Shape& b) {
  TRY(const Layout layout, m.regrouped(x.layout, a, b));
  return Values{m.reshaped(x, layout)};
}

Result<Values> reshape(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  const Value& x = call.in(0);
  Shape made[2];
  for (int which = 0; which < 2; ++which) {
    Ints target = call.integers("shape");
    if (!call.has_attribute("shape")) {
      if (!call.in(1).is_const()) return refused("its shape depends on data");
      target = call.in(1).at[which]->ints;
    }
    TRY(made[which], resolved(m.shape_at(x, which), target, call.integer("allowzero", 0) != 0));
  }
  return regroup(m, x, made[0], made[1]);
}

Result<Values> flatten(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  const Value& x = call.in(0);
  const auto rank = static_cast<int64_t>(x.layout.rank());
  int64_t axis = call.integer("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return refused("its axis does not exist");
  Shape made[2];
  for (int which = 0; which < 2; ++which) {
    const Shape shape = m.shape_at(x, which);
    made[which] = {1, 1};
    for (int64_t i = 0; i < rank; ++i) made[which][i < axis ? 0 : 1] *= shape[static_cast<size_t>(i)];
  }
  return regroup(m, x, made[0], made[1]);
}

Result<Ints> axes_of(Mapper& m, const Call& call, int64_t since, const Ints& fallback) {
  if (call.opset < since) return call.integers("axes", fallback);
  if (!call.has(1)) return fallback;
  return m.fixed_ints(call, 1, "axes");
}

Result<Values> squeeze(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  const Value& x = call.in(0);
  TRY(const Ints axes, axes_of(m, call, 13, {}));
  std::set<size_t> gone;
  for (const int64_t axis : axes) {
    TRY(const size_t at, axis_of(axis, x.layout.rank()));
    gone.insert(at);
  }
  Layout out = x.layout;
  out.dims.clear();
  for (size_t i = 0; i < x.layout.rank(); ++i) {
    const bool drop = gone.contains(i) || (axes.empty() && x.layout.dims[i] == 1 && !x.layout.holds_batch(i));
    if (!drop) {
      if (x.layout.holds_batch(i)) out.n = static_cast<int>(out.dims.size());
      out.dims.push_back(x.layout.dims[i]);
      continue;
    }
    if (x.layout.holds_batch(i)) return refused("the batch axis vanishes");
    if (x.layout.dims[i] != 1) return refused("an axis that vanishes has more than one element");
  }
  return Values{m.reshaped(x, out)};
}

Result<Values> unsqueeze(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  const Value& x = call.in(0);
  TRY(const Ints axes, axes_of(m, call, 13, {}));
  const size_t rank = x.layout.rank() + axes.size();
  std::set<size_t> fresh;
  for (const int64_t axis : axes) {
    TRY(const size_t at, axis_of(axis, rank));
    if (!fresh.insert(at).second) return refused("its axes repeat");
  }
  Layout out = x.layout;
  out.dims.clear();
  for (size_t i = 0, from = 0; i < rank; ++i) {
    if (fresh.contains(i)) {
      out.dims.push_back(1);
      continue;
    }
    if (x.layout.holds_batch(from)) out.n = static_cast<int>(i);
    out.dims.push_back(x.layout.dims[from++]);
  }
  return Values{m.reshaped(x, out)};
}

Result<Values> transpose(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  const size_t rank = call.in(0).layout.rank();
  Ints perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(rank - 1 - i);
  perm = call.integers("perm", perm);
  Ints sorted = perm, axes(rank);
  std::sort(sorted.begin(), sorted.end());
  std::iota(axes.begin(), axes.end(), 0);
  if (sorted != axes) return refused("perm is no permutation");
  return Values{m.transposed_value(call.in(0), perm)};
}

Result<Values> concat(Mapper& m, const Call& call) {
  TRY(const Value made, concatenated(m, call.inputs, call.integer("axis", 1)));
  return Values{made};
}

// x without any element along an axis.
Value nothing_of(Mapper& m, const Value& x, size_t axis) {
  Value made;
  for (int which = 0; which < 2; ++which) {
    Shape shape = m.shape_at(x, which);
    shape[axis] = 0;
    made.at[which] = filled(x.kind, shape, 0);
  }
  return made;
}

Result<Values> split(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  const Value& x = call.in(0);
  TRY(const size_t axis, axis_of(call.integer("axis", 0), x.layout.rank()));
  if (x.layout.holds_batch(axis)) return refused("splits the batch");
  const int64_t size = x.layout.dims[axis];
  Ints sizes = call.integers("split");
  if (call.has(1)) {
    TRY(sizes, m.fixed_ints(call, 1, "sizes"));
  }
  if (sizes.empty()) {
    const int64_t parts = call.integer("num_outputs", static_cast<int64_t>(call.outputs()));
    if (parts < 1) return refused("has no outputs");
    const int64_t each = (size + parts - 1) / parts;
    for (int64_t at = 0; at < size; at += each) sizes.push_back(std::min(each, size - at));
  }
  Values made;
  int64_t begin = 0;
  for (const int64_t one : sizes) {
    if (one < 0 || begin + one > size) return refused("its sizes do not fit");
    made.push_back(one == 0 ? nothing_of(m, x, axis) : cut(m, x, axis, begin, begin + one, 1));
    begin += one;
  }
  return made;
}

// A slice of one axis as ONNX counts; absent where nothing is left.
Result<Value> elements_of(Mapper& m, const Value& x, size_t axis, int64_t start, int64_t stop, int64_t step) {
  const int64_t size = x.layout.dims[axis];
  if (step == 0) return refused("a step is 0");
  const auto within = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  if (step > 0) {
    const int64_t begin = within(start, 0, size), end = within(stop, 0, size);
    return begin >= end ? Value{} : cut(m, x, axis, begin, end, std::min(step, size));
  }
  // Backwards: the same elements forwards, then turned round.
  const int64_t last = within(start, -1, size - 1), before = stop < -size ? -1 : within(stop, -1, size - 1);
  if (last <= before) return Value{};
  const int64_t back = std::max(step, -size), number = (last - before - back - 1) / -back;
  return flipped(m, cut(m, x, axis, last + (number - 1) * back, last + 1, -back), axis);
}

Result<Values> slice(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  Value x = call.in(0);
  Ints starts = call.integers("starts"), ends = call.integers("ends"), axes = call.integers("axes"), steps;
  Ints ends_b = ends;
  if (call.opset >= 10) {
    TRY(starts, m.fixed_ints(call, 1, "starts"));
    if (!call.in(2).is_const()) return refused("its ends are computed from the inputs");
    ends = call.in(2).at[0]->ints;
    ends_b = call.in(2).at[1]->ints;
    if (call.has(3)) {
      TRY(axes, m.fixed_ints(call, 3, "axes"));
    }
    if (call.has(4)) {
      TRY(steps, m.fixed_ints(call, 4, "steps"));
    }
  }
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  std::optional<size_t> empty;  // an axis of which nothing is left
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return refused("its starts, ends, axes and steps differ in number");
  for (size_t i = 0; i < starts.size(); ++i) {
    TRY(const size_t axis, axis_of(axes[i], x.layout.rank()));
    if (x.layout.holds_batch(axis)) {
      const Shape whole = m.shape_at(x, 0);
      const bool all =
          starts[i] == 0 && steps[i] == 1 && ends[i] >= whole[axis] && ends_b[i] >= m.shape_at(x, 1)[axis];
      if (!all) return refused("takes some rows of the batch");
      continue;
    }
    if (ends[i] != ends_b[i]) return refused("an end depends on the batch size");
    TRY(const Value kept, elements_of(m, x, axis, starts[i], ends[i], steps[i]));
    if (kept.absent())
      empty = axis;
    else
      x = kept;
  }
  if (empty) return Values{nothing_of(m, x, *empty)};
  return Values{x};
}

Result<Values> gather(Mapper& m, const Call& call) {
  const Value &x = call.in(0), &ids = call.in(1);
  if (x.is_const()) {
    CHECK_OK(want_graph(call, 1));
    if (x.at[0]->shape.size() != 2 || call.integer("axis", 0) != 0)
      return refused("looks up what is no table of rows");
    TRY(const std::string table, m.weight(x, "weight"));
    Layout out = ids.layout;
    out.dims.push_back(x.at[0]->shape[1]);
    return Values{m.make("embedding", {ids.name}, out, {}, {{"weight", table}})};
  }
  if (ids.is_graph()) return refused("its indices depend on the inputs");
  TRY(const ArrayPtr at, m.fixed(call, 1, "index"));
  TRY(const size_t axis, axis_of(call.integer("axis", 0), x.layout.rank()));
  if (x.layout.holds_batch(axis)) return refused("takes rows of the batch");
  const int64_t size = x.layout.dims[axis];
  Ints places = at->ints;
  for (int64_t& one : places) {
    if (one < -size || one >= size) return refused("an index is out of range");
    if (one < 0) one += size;
  }
  if (places.empty()) return refused("it takes nothing");
  Layout out = x.layout;
  out.dims.erase(out.dims.begin() + static_cast<int64_t>(axis));
  out.dims.insert(out.dims.begin() + static_cast<int64_t>(axis), at->shape.begin(), at->shape.end());
  if (out.n > static_cast<int>(axis)) out.n += static_cast<int>(at->shape.size()) - 1;
  const int64_t step = places.size() > 1 ? places[1] - places[0] : 1;
  bool even = step >= 1;
  for (size_t i = 1; i < places.size(); ++i) even = even && places[i] - places[i - 1] == step;
  if (even) return Values{m.reshaped(cut(m, x, axis, places.front(), places.back() + 1, step), out)};
  if (x.kind != Kind::kFloat) return refused("takes integers in no even order");
  TRY(const Value made, taken_places(m, x, axis, places));
  return Values{m.reshaped(made, out)};
}

Result<Values> expand(Mapper& m, const Call& call) {
  const Value &x = call.in(0), &target = call.in(1);
  if (!target.is_const()) return refused("its shape depends on data");
  Shape made[2];
  for (int which = 0; which < 2; ++which) {
    TRY(made[which], broadcast(m.shape_at(x, which), target.at[which]->ints));
  }
  if (x.is_graph() && x.layout.n == kNone && made[0] == made[1]) {
    if (x.layout.dims == made[0]) return Values{x};
    TRY(const Value wide, m.elementwise("mul", {x, m.constant(filled(Kind::kFloat, made[0], 1))}));
    return Values{wide};
  }
  Layout out{.dims = made[0], .n = kAdded};
  if (x.is_graph() && x.layout.n != kNone) {
    const auto more = static_cast<int>(made[0].size() - x.layout.rank());
    out.n = x.layout.n == kAdded ? kAdded : x.layout.n + more;
    out.before = x.layout.before;
    out.after = x.layout.after;
    if (out.n != kAdded) {  // a batch of 1 may not be repeated either
      const auto n = static_cast<size_t>(out.n), own = static_cast<size_t>(x.layout.n);
      for (int which = 0; which < 2; ++which) {
        if (made[which][n] != m.shape_at(x, which)[own]) return refused("repeats rows of the batch");
      }
      out.dims[n] = out.before * out.after;
    }
  } else {
    for (size_t i = 0; i < made[0].size(); ++i) {
      if (made[0][i] == made[1][i]) continue;
      if (out.n != kAdded || made[0][i] != m.sizes[0])
        return refused("its shape is no simple function of the batch");
      out.n = static_cast<int>(i);
      out.dims[i] = 1;
    }
    if (out.n == kAdded) return refused("computes with constants alone");
  }
  if (x.is_graph() && out == x.layout) return Values{x};
  TRY(const std::string name, m.operand(x, out));
  const Value* rows = x.is_graph() && x.layout.n != kNone ? &x : m.any_input();
  if (rows == nullptr || m.graph.shape(name).empty()) return refused("computes with constants alone");
  return Values{m.make("expand", {name, rows->name}, out, {{"shape", numbers_text(ir_shape(out))}}, {},
                       x.is_graph() ? x.kind : Kind::kFloat)};
}

Result<Values> tile(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  Value x = call.in(0);
  TRY(const Ints repeats, m.fixed_ints(call, 1, "repeats"));
  if (repeats.size() != x.layout.rank()) return refused("its repeats do not fit");
  for (size_t axis = 0; axis < repeats.size(); ++axis) {
    if (repeats[axis] == 1) continue;
    if (x.layout.holds_batch(axis)) return refused("repeats rows of the batch");
    if (repeats[axis] < 1 || repeats[axis] > 64) return refused("repeats more than 64 times, or not at all");
    Layout out = x.layout;
    out.dims[axis] *= repeats[axis];
    x = m.make("concat", std::vector<std::string>(static_cast<size_t>(repeats[axis]), x.name), out,
               {{"axis", std::to_string(ir_axis(out, axis))}}, {}, x.kind);
  }
  return Values{x};
}

// Numbers of x itself around an axis: mirrored, of the border, or from the other end.
Result<Value> padded_by_itself(Mapper& m, const Value& x, size_t axis, int64_t before, int64_t after,
                               const std::string& mode) {
  const int64_t size = x.layout.dims[axis];
  if (x.kind != Kind::kFloat) return refused("pads integers");
  if (mode != "edge" && std::max(before, after) > size - (mode == "reflect" ? 1 : 0))
    return refused("pads by more than there is");
  const auto piece = [&](int64_t begin, int64_t count, bool front) -> Value {
    if (mode == "edge")
      return repeated(m, cut(m, x, axis, front ? 0 : size - 1, front ? 1 : size, 1), axis, count);
    const Value part = cut(m, x, axis, begin, begin + count, 1);
    return mode == "reflect" ? flipped(m, part, axis) : part;
  };
  Values parts = {x};
  if (before > 0) parts.insert(parts.begin(), piece(mode == "reflect" ? 1 : size - before, before, true));
  if (after > 0) parts.push_back(piece(mode == "reflect" ? size - 1 - after : 0, after, false));
  return concatenated(m, parts, static_cast<int64_t>(axis));
}

Result<Values> pad(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  Value x = call.in(0);
  const std::string mode = call.text("mode", "constant");
  Ints pads = call.integers("pads", call.integers("paddings")), axes;
  double value = call.real("value", 0);
  if (call.opset >= 11) {
    TRY(pads, m.fixed_ints(call, 1, "pads"));
    if (call.has(2)) {
      TRY(value, m.fixed_real(call, 2, "value"));
    }
    if (call.has(3)) {
      TRY(axes, m.fixed_ints(call, 3, "axes"));
    }
  }
  const size_t rank = x.layout.rank();
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (pads.size() != 2 * axes.size()) return refused("its pads do not fit");
  Ints all(2 * (ir_shape(x.layout).size() - 1), 0);
  Layout out = x.layout;
  for (size_t i = 0; i < axes.size(); ++i) {
    TRY(const size_t axis, axis_of(axes[i], rank));
    const int64_t before = pads[i], after = pads[i + axes.size()], size = x.layout.dims[axis];
    if (before == 0 && after == 0) continue;
    if (x.layout.holds_batch(axis)) return refused("pads the batch");
    const int64_t begin = std::max<int64_t>(-before, 0), end = size - std::max<int64_t>(-after, 0);
    if (begin >= end || before > (1 << 24) || after > (1 << 24)) return refused("its pads do not fit");
    x = cut(m, x, axis, begin, end, 1);
    out.dims[axis] = size + before + after;
    if (mode != "constant") {
      TRY(x, padded_by_itself(m, x, axis, std::max<int64_t>(before, 0), std::max<int64_t>(after, 0), mode));
      continue;
    }
    const auto at = static_cast<size_t>(2 * (ir_axis(x.layout, axis) - 1));
    all[at] = std::max<int64_t>(before, 0);
    all[at + 1] = std::max<int64_t>(after, 0);
  }
  if (std::ranges::all_of(all, [](int64_t n) { return n == 0; })) return Values{x};
  return Values{m.make("pad", {x.name}, out, {{"pad", numbers_text(all)}, {"value", real_text(value)}})};
}

// Cut or padded with 0 at both sides, one more behind where they are odd.
Result<Values> center_crop_pad(Mapper& m, const Call& call) {
  CHECK_OK(want_graph(call));
  Value x = call.in(0);
  TRY(const Ints sizes, m.fixed_ints(call, 1, "shape"));
  const size_t rank = x.layout.rank();
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  axes = call.integers("axes", axes);
  if (axes.size() != sizes.size()) return refused("its axes do not fit");
  Ints pads(2 * (ir_shape(x.layout).size() - 1), 0);
  Layout out = x.layout;
  for (size_t i = 0; i < axes.size(); ++i) {
    TRY(const size_t axis, axis_of(axes[i], rank));
    const int64_t size = m.shape_at(x, 0)[axis], wanted = sizes[i];
    if (wanted == size && size == m.shape_at(x, 1)[axis]) continue;
    if (x.layout.holds_batch(axis)) return refused("cuts or pads the batch");
    if (wanted < 1 || wanted > (1 << 20)) return refused("nothing is left");
    out.dims[axis] = wanted;
    if (wanted < size) {
      const int64_t begin = (size - wanted) / 2;
      x = cut(m, x, axis, begin, begin + wanted, 1);
      continue;
    }
    const auto at = static_cast<size_t>(2 * (ir_axis(x.layout, axis) - 1));
    pads[at] = (wanted - size) / 2;
    pads[at + 1] = wanted - size - pads[at];
  }
  if (std::ranges::all_of(pads, [](int64_t n) { return n == 0; })) return Values{x};
  return Values{m.make("pad", {x.name}, out, {{"pad", numbers_text(pads)}, {"value", "0.0"}})};
}

// Ones on a diagonal: of the input only the sizes count.
Result<Values> eye_like(Mapper& m, const Call& call) {
  const Value& x = call.in(0);
  Kind kind = x.is_const() ? x.at[0]->kind : x.kind;
  if (call.has_attribute("dtype")) {
    TRY(kind, kind_of(static_cast<int32_t>(call.integer("dtype", 1))));
  }
  Value made;
  for (int which = 0; which < 2; ++which) {
    const Shape shape = m.shape_at(x, which);
    if (shape.size() != 2) return refused("it is no matrix");
    TRY(const int64_t elements, count(shape, int64_t{1} << 24));
    static_cast<void>(elements);
    auto eye = std::make_shared<Array>(*filled(kind, shape, 0));
    for (int64_t i = 0; i < shape[0]; ++i) {
      const int64_t j = i + call.integer("k", 0);
      if (j < 0 || j >= shape[1]) continue;
      const auto at = static_cast<size_t>(i * shape[1] + j);
      if (kind == Kind::kFloat)
        eye->reals[at] = 1;
      else
        eye->ints[at] = 1;
    }
    made.at[which] = std::move(eye);
  }
  return Values{made};
}

// Pictures in blocks: as reshapes and one transposition.
Result<Values> depth_to_space(Mapper& m, const Call& call) {
  TRY(const Value x, m.rows_first(call.in(0)));
  const int64_t b = call.integer("blocksize", 0);
  const Shape& d = x.layout.dims;
  if (d.size() != 4 || b < 1 || d[1] % (b * b) != 0) return refused("its sizes do not fit");
  const int64_t c = d[1] / (b * b);
  const bool crd = call.text("mode", "DCR") == "CRD";
  const Value cut_up =
      m.reshaped(x, {crd ? Shape{1, c, b, b, d[2], d[3]} : Shape{1, b, b, c, d[2], d[3]}, 0});
  const Value moved = m.transposed_value(cut_up, crd ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
  return Values{m.as_before(m.reshaped(moved, {{1, c, d[2] * b, d[3] * b}, 0}), call.in(0))};
}

Result<Values> space_to_depth(Mapper& m, const Call& call) {
  TRY(const Value x, m.rows_first(call.in(0)));
  const int64_t b = call.integer("blocksize", 0);
  const Shape& d = x.layout.dims;
  if (d.size() != 4 || b < 1 || d[2] % b != 0 || d[3] % b != 0) return refused("its sizes do not fit");
  const Value cut_up = m.reshaped(x, {{1, d[1], d[2] / b, b, d[3] / b, b}, 0});
  const Value moved = m.transposed_value(cut_up, {0, 3, 5, 1, 2, 4});
  return Values{m.as_before(m.reshaped(moved, {{1, d[1] * b * b, d[2] / b, d[3] / b}, 0}), call.in(0))};
}

}  // namespace

Rows shape_rows() {
  return {
      {"Shape", shape_of},
      {"Size", size_of},
      {"Reshape", reshape},
      {"Flatten", flatten},
      {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze},
      {"Transpose", transpose},
      {"Concat", concat},
      {"Split", split},
      {"Slice", slice},
      {"Gather", gather},
      {"Expand", expand},
      {"Tile", tile},
      {"Pad", pad},
      {"CenterCropPad", center_crop_pad},
      {"EyeLike", eye_like},
      {"DepthToSpace", depth_to_space},
      {"SpaceToDepth", space_to_depth},
  };
}

}  // namespace bakeoff::onnx
