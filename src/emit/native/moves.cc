// Ops that move elements: one loop over all places, in which both sides go by steps of their own. Backwards the same loop
// adds the other way.

#include <fmt/format.h>

#include "emit/native/ops.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;
using Ints = std::vector<int64_t>;

// Over `sizes` from an input to the output.
struct Move {
  ir::Shape sizes;
  Operand from, to;
};

Operand flat(const ir::Shape& sizes) { return {.strides = strides_of(sizes)}; }

// Axis i of the output is axis perm[i] of the input.
Move permuted(const Call& c, const Ints& perm) {
  const Ints strides = strides_of(c.in(0).sizes);
  Operand from;
  for (const int64_t axis : perm) from.strides.push_back(strides[static_cast<size_t>(axis)]);
  return {c.result().sizes, from, flat(c.result().sizes)};
}

Move move_of_slice(const Call& c) {
  const size_t axis = c.axis(c.node().integer("axis"));
  Operand from = flat(c.in(0).sizes);
  from.offset = c.node().integer("begin") * from.strides[axis];
  from.strides[axis] *= c.node().integer("step");
  return {c.result().sizes, from, flat(c.result().sizes)};
}

Move move_of_flip(const Call& c) {
  Operand from = flat(c.in(0).sizes);
  for (const int64_t canonical : c.node().integers("axes")) {
    const size_t axis = c.axis(canonical);
    from.offset += (c.in(0).sizes[axis] - 1) * from.strides[axis];
    from.strides[axis] = -from.strides[axis];
  }
  return {c.result().sizes, from, flat(c.result().sizes)};
}

Move move_of_pad(const Call& c) {
  const Ints& pads = c.node().integers("pad");
  Operand to = flat(c.result().sizes);
  for (size_t axis = 1; axis < c.result().sizes.size(); ++axis)
    to.offset += pads[2 * axis - 2] * to.strides[c.axis(static_cast<int64_t>(axis))];
  return {c.in(0).sizes, flat(c.in(0).sizes), to};
}

// Of input i among those that are joined along an axis.
Move move_of_part(const Call& c, size_t i) {
  const size_t axis = c.axis(c.node().integer("axis"));
  Operand to = flat(c.result().sizes);
  for (size_t before = 0; before < i; ++before) to.offset += c.in(before).sizes[axis] * to.strides[axis];
  return {c.in(i).sizes, flat(c.in(i).sizes), to};
}

// Of input i among those that stand side by side, each as N,elements.
Move move_of_joined(const Call& c, size_t i) {
  const auto width = [&](size_t k) { return count_of(c.in(k).sizes, 1, c.in(k).sizes.size()).count; };
  Move move{{c.in(i).sizes[0], width(i)}, {.strides = {width(i), 1}}, flat(c.result().sizes)};
  for (size_t before = 0; before < i; ++before) move.to.offset += width(before);
  return move;
}

Move move_of(const Call& c, size_t i) {
  if (c.step.node < 0)
    return permuted(c, conversion_perm(c.in(0).order, c.result().order, c.in(0).sizes.size()));
  const ir::Node& node = c.node();
  switch (node.op) {
    case Op::kTranspose:
      return permuted(c, physical_perm(c.in(0).order, c.result().order, node.integers("perm")));
    case Op::kSlice:
      return move_of_slice(c);
    case Op::kFlip:
      return move_of_flip(c);
    case Op::kPad:
      return move_of_pad(c);
    case Op::kConcat:
      return move_of_part(c, i);
    case Op::kJoin:
      return move_of_joined(c, i);
    case Op::kExpand:
      return {c.result().sizes, broadcast(c.in(0).sizes, c.result().sizes), flat(c.result().sizes)};
    default:
      return {c.result().sizes, flat(c.result().sizes), flat(c.result().sizes)};  // the same elements
  }
}

// Of an expand the second input only says how many rows there are.
size_t moved(const Call& c) {
  return c.step.node >= 0 && c.node().op == Op::kExpand ? 1 : c.step.inputs.size();
}

void move_forward(const Call& c) {
  if (c.step.node >= 0 && c.node().op == Op::kPad)
    fill(c.out, c.y(), count_of(c.result().sizes), real(c.node().real("value")));
  for (size_t i = 0; i < moved(c); ++i) {
    const Move m = move_of(c, i);
    loops(c, m.sizes, {m.from, m.to}, {fmt::format("{}[@1] = {}[@0];", c.y(), c.x(i))});
  }
}

void move_backward(const Call& c) {
  for (size_t i = 0; i < moved(c); ++i) {
    if (!c.wants(i)) continue;
    const Move m = move_of(c, i);
    loops(c, m.sizes, {m.from, m.to}, {fmt::format("{}[@0] += {}[@1];", c.dx(i), c.g())});
  }
}

}  // namespace

const OpRow& turn_row() {
  static const OpRow row = {move_forward, move_backward, false, false};
  return row;
}

OpRows move_rows() {
  OpRows rows;
  for (const Op op : {Op::kFlatten, Op::kReshape, Op::kTranspose, Op::kPad, Op::kConcat, Op::kJoin,
                      Op::kSlice, Op::kFlip, Op::kExpand})
    rows[op] = turn_row();
  return rows;
}

}  // namespace bakeoff::emit::native
