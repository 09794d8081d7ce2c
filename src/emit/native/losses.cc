// Losses. Their sums are made in double.

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/cpp.h"
#include "emit/native/ops.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;

bool mean(const Call& c) { return c.node().word("reduction") == "mean"; }

// How many elements a whole batch has; `rows` are those that run together.
std::string in_batch(const ir::Shape& sizes) {
  const Count all = count_of(sizes);
  return (all.rows ? "batch_" : "") + all.text();
}
const char* gives(const Call& c) { return c.adds_up() ? "+=" : "="; }

std::vector<std::string> entropy_arguments(const Call& c) {
  return {count_of(c.in(1).sizes).text(),
          fmt::format("{}", c.node().real("label_smoothing")),
          std::to_string(ir::ignore_index(c.node()).value_or(-1)),
          !mean(c)                                 ? "1"
          : ir::ignore_index(c.node()).has_value() ? "0"
                                                   : in_batch(c.in(1).sizes),
          c.x(0),
          c.x(1)};
}
void cross_entropy(const Call& c) {
  auto arguments = entropy_arguments(c);
  std::string list;
  for (const std::string& one : arguments) list += (list.empty() ? "" : ", ") + one;
  cpp::statement(c.out, fmt::format("{}[0] {} softmax_cross_entropy<{}>({});", c.y(), gives(c),
                                    c.in(0).sizes.back(), list));
}
void cross_entropy_backward(const Call& c) {
  if (!c.wants(0)) return;
  auto arguments = entropy_arguments(c);
  arguments.push_back(c.g() + "[0]");
  arguments.push_back(c.dx());
  call(c, "softmax_cross_entropy_dx", {std::to_string(c.in(0).sizes.back())}, arguments);
}

// Of a prediction p and a target t: the loss of one element, and its slopes.
struct Terms {
  const char *value, *slope, *target_slope;
};
Terms terms(Op op) {
  if (op == Op::kMse) return {"(p - t) * (p - t)", "2 * (p - t)", "2 * (t - p)"};
  if (op == Op::kL1) return {"std::abs(p - t)", "sign_of(p - t)", "sign_of(t - p)"};
  return {"binary_cross_entropy(p, t)", "(logistic(p) - t)", "-p"};
}

std::vector<Operand> both(const Call& c) {
  return {{.strides = strides_of(c.in(0).sizes)}, {.strides = strides_of(c.in(1).sizes)}};
}
std::string read(const Call& c) { return fmt::format("const Real p = {}[@0], t = {}[@1];", c.x(0), c.x(1)); }

void reduced(const Call& c) {
  c.out.line("double sum = 0;");
  loops(c.out, c.in(0).sizes, both(c),
        {read(c), fmt::format("sum += static_cast<double>({});", terms(c.node().op).value)});
  const std::string count = fmt::format("static_cast<double>({})", in_batch(c.in(0).sizes));
  c.out.line(
      fmt::format("{}[0] {} static_cast<Real>(sum{});", c.y(), gives(c), mean(c) ? " / " + count : ""));
}
void reduced_backward(const Call& c) {
  const Terms of = terms(c.node().op);
  const std::string count = fmt::format(" / static_cast<Real>({})", in_batch(c.in(0).sizes));
  c.out.line(fmt::format("const Real share = {}[0]{};", c.g(), mean(c) ? count : ""));
  std::vector<std::string> statements = {read(c)};
  if (c.wants(0)) statements.push_back(fmt::format("{}[@0] += share * {};", c.dx(0), of.slope));
  if (c.wants(1)) statements.push_back(fmt::format("{}[@1] += share * {};", c.dx(1), of.target_slope));
  loops(c.out, c.in(0).sizes, both(c), statements);
}

std::vector<std::string> frames(const Call& c) {
  const ir::Shape& x = c.in(0).sizes;
  return {std::to_string(x[1]), std::to_string(x[2]), std::to_string(c.in(1).sizes[1])};
}
void ctc(const Call& c) {
  c.out.line(fmt::format("{}[0] = static_cast<Real>(ctc<{}>(rows, {}, {}){});", c.y(), join(frames(c), ", "),
                         c.x(0), c.x(1), mean(c) ? " / static_cast<double>(rows)" : ""));
}
void ctc_backward(const Call& c) {
  call(c, "ctc_dx", frames(c),
       {"rows", c.g() + (mean(c) ? "[0] / static_cast<Real>(rows)" : "[0]"), c.x(0), c.x(1), c.dx()});
}

}  // namespace

OpRows loss_rows() {
  const OpRow elements = {reduced, reduced_backward, true, false};
  return {{Op::kSoftmaxCrossEntropy, {cross_entropy, cross_entropy_backward, true, false}},
          {Op::kCtc, {ctc, ctc_backward, true, false}},
          {Op::kMse, elements},
          {Op::kL1, elements},
          {Op::kBceWithLogits, elements}};
}

}  // namespace bakeoff::emit::native
