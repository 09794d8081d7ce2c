// Ops along axes: reductions, softmax and its kin, choices of places.
//
// There are two forms. An op that needs a whole line before it can give its first number (softmax, cumulative
// sums, argmax) calls a kernel that is named after the op, with the length of a line and the distance of its
// elements as constants. A reduction needs no line: it is a loop over all elements in which the output stands
// still along the axes that go.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emit/native/ops.h"
#include "ir/op_table.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;

// Lines along one axis of an array: how many in all, how long, how far apart two neighbours are.
struct Lines {
  std::vector<std::string> constants;
  std::string outer;
  Lines(const ir::Shape& sizes, size_t axis)
      : constants({std::to_string(sizes[axis]), std::to_string(ir::product(sizes, axis + 1, sizes.size()))}),
        outer(count_of(sizes, 0, axis).text()) {}
  explicit Lines(const Call& c) : Lines(c.in(0).sizes, c.axis(c.node().integer("axis"))) {}
};

// Functions of lines have their op's name.
std::string function_of(const Call& c) { return ir::info(c.node().op).name; }
void lines_forward(const Call& c) {
  const Lines l(c);
  call(c, function_of(c), l.constants, {l.outer, c.x(), c.y()});
}
// `from`: what it needs besides the gradient.
void lines_backward(const Call& c, const std::vector<std::string>& from) {
  const Lines l(c);
  std::vector<std::string> arguments = {l.outer};
  arguments.insert(arguments.end(), from.begin(), from.end());
  arguments.insert(arguments.end(), {c.g(), c.dx()});
  call(c, function_of(c) + "_dx", l.constants, arguments);
}
void softmax_backward(const Call& c) { lines_backward(c, {c.y()}); }
void prod_backward(const Call& c) { lines_backward(c, {c.x()}); }
void cumsum_backward(const Call& c) { lines_backward(c, {}); }

// Loops over the elements of the input; @0 is one's place, @1 that in the output, which lacks the axes or has size 1.
void each_reduced(const Call& c, const std::vector<std::string>& statements) {
  const ir::Shape& x = c.in(0).sizes;
  std::vector<bool> goes(x.size(), false);
  for (const int64_t axis : c.node().reduced_axes()) goes[c.axis(axis)] = true;
  ir::Shape kept = x;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    if (goes[axis]) kept[axis] = 1;
  }
  // The output of a reduction that drops axes is held in canonical order, of the same numbers.
  Operand out = broadcast(kept, x);
  loops(c, x, {{.strides = strides_of(x)}, out}, statements);
}

double share(const Call& c) {
  const ir::Shape& x = c.in(0).sizes;
  return static_cast<double>(count_of(x).count) / static_cast<double>(count_of(c.result().sizes).count);
}

void sum(const Call& c) {
  fill(c.out, c.y(), count_of(c.result().sizes));
  each_reduced(c, {fmt::format("{}[@1] += {}[@0];", c.y(), c.x())});
  if (c.node().op == Op::kMean)
    loops(c, c.result().sizes, {{.strides = strides_of(c.result().sizes)}},
          {fmt::format("{}[@0] /= {};", c.y(), share(c))});
}
void sum_backward(const Call& c) {
  const std::string part = c.node().op == Op::kMean ? fmt::format(" / {}", real(share(c))) : "";
  each_reduced(c, {fmt::format("{}[@0] += {}[@1]{};", c.dx(), c.g(), part)});
}

bool largest(const Call& c) { return c.node().op != Op::kMin; }
void extreme_into(const Call& c, const std::string& to) {
  fill(c.out, to, count_of(c.result().sizes), real(largest(c) ? -INFINITY : INFINITY));
  each_reduced(
      c, {fmt::format("{0}[@1] = {1}({0}[@1], {2}[@0]);", to, largest(c) ? "larger" : "smaller", c.x())});
}
// Keeps how many elements share each extreme.
void extreme(const Call& c) {
  extreme_into(c, c.y());
  fill(c.out, c.step.kept, count_of(c.result().sizes));
  each_reduced(c, {fmt::format("{}[@1] += {}[@0] == {}[@1];", c.step.kept, c.x(), c.y())});
}
void extreme_backward(const Call& c) {
  each_reduced(c, {fmt::format("if ({}[@0] == {}[@1]) {}[@0] += {}[@1] / {}[@1];", c.x(), c.y(), c.dx(),
                               c.g(), c.step.kept)});
}

// Keeps the maxima.
void logsumexp(const Call& c) {
  extreme_into(c, c.step.kept);
  fill(c.out, c.y(), count_of(c.result().sizes));
  each_reduced(c, {fmt::format("{}[@1] += exp_of({}[@0] - {}[@1]);", c.y(), c.x(), c.step.kept)});
  loops(c, c.result().sizes, {{.strides = strides_of(c.result().sizes)}},
        {fmt::format("{0}[@0] = {1}[@0] + std::log({0}[@0]);", c.y(), c.step.kept)});
}
void logsumexp_backward(const Call& c) {
  each_reduced(c, {fmt::format("{}[@0] += {}[@1] * exp_of({}[@0] - {}[@1]);", c.dx(), c.g(), c.x(), c.y())});
}

// Stretches at places: of `take` the same in every row, of the others each row's own.
struct Chosen {
  std::vector<std::string> constants;
  std::string outer;
  Chosen(const Call& c, const ir::Shape& whole, size_t axis) {
    const ir::Shape& places = c.in(1).sizes;
    const int64_t count = c.node().op == Op::kTake ? count_of(places).count : places.back();
    constants = {std::to_string(whole[axis]), std::to_string(count),
                 std::to_string(ir::product(whole, axis + 1, whole.size()))};
    outer = count_of(whole, 0, axis).text();
  }
};

void take(const Call& c) {
  const Chosen at(c, c.in(0).sizes, c.axis(c.node().integer("axis")));
  call(c, c.node().op == Op::kTake ? "take" : "gather", at.constants, {at.outer, c.x(0), c.x(1), c.y()});
}
void take_backward(const Call& c) {
  const Chosen at(c, c.in(0).sizes, c.axis(c.node().integer("axis")));
  call(c, c.node().op == Op::kTake ? "take_dx" : "scatter_add", at.constants,
       {at.outer, c.x(1), c.g(), c.dx(0)});
}
void scatter(const Call& c) {
  const Chosen at(c, c.result().sizes, static_cast<size_t>(c.node().integer("axis")));
  fill(c.out, c.y(), count_of(c.result().sizes));
  call(c, "scatter_add", at.constants, {at.outer, c.x(1), c.x(0), c.y()});
}
void scatter_backward(const Call& c) {
  const Chosen at(c, c.result().sizes, static_cast<size_t>(c.node().integer("axis")));
  call(c, "gather_dx", at.constants, {at.outer, c.g(), c.x(1), c.dx(0)});
}

}  // namespace

OpRows axis_rows() {
  return {{Op::kSum, {sum, sum_backward, false, false}},
          {Op::kMean, {sum, sum_backward, false, false}},
          {Op::kMax, {extreme, extreme_backward, true, true, as_many}},
          {Op::kMin, {extreme, extreme_backward, true, true, as_many}},
          {Op::kLogsumexp, {logsumexp, logsumexp_backward, true, true, as_many}},
          {Op::kProd, {lines_forward, prod_backward, true, false}},
          {Op::kArgmax, {.forward = lines_forward}},
          {Op::kCumsum, {lines_forward, cumsum_backward, false, false}},
          {Op::kSoftmax, {lines_forward, softmax_backward, false, true}},
          {Op::kLogSoftmax, {lines_forward, softmax_backward, false, true}},
          {Op::kTake, {take, take_backward, true, false}},
          {Op::kGather, {take, take_backward, true, false}},
          {Op::kScatterAdd, {scatter, scatter_backward, true, false}}};
}

}  // namespace bakeoff::emit::native
