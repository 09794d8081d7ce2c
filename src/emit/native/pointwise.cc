// Ops that see one element of each input at a time, as formulas: {0}, {1} and {2} are the inputs, {y} the
// output, {name} an attribute. A formula and its slopes are all that such an op costs; both run as one loop
// over all places.
//
// Slopes are written by {y} where that saves work (sigmoid, tanh, exp): then backward does not need the
// input, whose memory another value can take. mentions() reads that from the text. "1" and "-1" are
// recognised and multiply nothing.
//
// The functions in the formulas (exp_of, tanh_of, erf_of) are the program's own, because those of the C
// library do not run on vectors.

#include <fmt/format.h>

#include <cmath>

#include "emit/native/ops.h"
#include "ir/elementwise.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;

struct Formula {
  std::string value;
  std::vector<std::string> slopes = {};  // by input; empty: 0
};

std::map<Op, Formula> table() {
  return {
      {Op::kRelu, {"{0} <= 0 ? Real{0} : {0}", {"({0} <= 0 ? Real{0} : Real{1})"}}},
      {Op::kSigmoid, {"logistic({0})", {"{y} * (1 - {y})"}}},
      {Op::kTanh, {"tanh_of({0})", {"(1 - {y} * {y})"}}},
      {Op::kGelu, {"gelu_{form}({0})", {"gelu_{form}_slope({0})"}}},
      {Op::kAdd, {"{0} + {1}", {"1", "1"}}},
      {Op::kMul, {"{0} * {1}", {"{1}", "{0}"}}},
      {Op::kNeg, {"-{0}", {"-1"}}},
      {Op::kAbs, {"std::abs({0})", {"sign_of({0})"}}},
      {Op::kSign, {"sign_of({0})"}},
      {Op::kFloor, {"std::floor({0})"}},
      {Op::kCeil, {"std::ceil({0})"}},
      {Op::kRound, {"std::nearbyint({0})"}},
      {Op::kSquare, {"{0} * {0}", {"2 * {0}"}}},
      {Op::kSqrt, {"std::sqrt({0})", {"Real{0.5} / {y}"}}},
      {Op::kRsqrt, {"1 / std::sqrt({0})", {"Real{-0.5} * {y} / {0}"}}},
      {Op::kReciprocal, {"1 / {0}", {"-{y} * {y}"}}},
      {Op::kExp, {"exp_of({0})", {"{y}"}}},
      {Op::kExpm1, {"std::expm1({0})", {"({y} + 1)"}}},
      {Op::kLog, {"std::log({0})", {"1 / {0}"}}},
      {Op::kLog1p, {"std::log1p({0})", {"1 / (1 + {0})"}}},
      {Op::kSin, {"std::sin({0})", {"std::cos({0})"}}},
      {Op::kCos, {"std::cos({0})", {"-std::sin({0})"}}},
      {Op::kAtan, {"std::atan({0})", {"1 / (1 + {0} * {0})"}}},
      {Op::kErf, {"erf_of({0})", {"Real{1.1283791670955126} * exp_of(-{0} * {0})"}}},
      {Op::kSilu, {"{0} * logistic({0})", {"(logistic({0}) + {y} * (1 - logistic({0})))"}}},
      {Op::kHardSwish,
       {"{0} * std::clamp({0} + 3, Real{0}, Real{6}) / 6",
        {"({0} <= -3 ? Real{0} : {0} >= 3 ? Real{1} : (2 * {0} + 3) / 6)"}}},
      {Op::kHardSigmoid,
       {"std::clamp({alpha} * {0} + {beta}, Real{0}, Real{1})",
        {"({y} > 0 && {y} < 1 ? {alpha} : Real{0})"}}},
      {Op::kElu, {"{0} > 0 ? {0} : {alpha} * std::expm1({0})", {"({0} > 0 ? Real{1} : {y} + {alpha})"}}},
      {Op::kSelu,
       {"Real{1.0507009873554805} * ({0} > 0 ? {0} : Real{1.6732632423543772} * std::expm1({0}))",
        {"({0} > 0 ? Real{1.0507009873554805} : {y} + Real{1.7580993408473766})"}}},
      {Op::kLeakyRelu, {"{0} > 0 ? {0} : {slope} * {0}", {"({0} > 0 ? Real{1} : {slope})"}}},
      {Op::kSoftplus, {"log_1p_exp({0})", {"logistic({0})"}}},
      {Op::kMish, {"{0} * tanh_of(log_1p_exp({0}))", {"mish_slope({0})"}}},
      {Op::kSoftsign, {"{0} / (1 + std::abs({0}))", {"1 / ((1 + std::abs({0})) * (1 + std::abs({0})))"}}},
      {Op::kLogSigmoid, {"-log_1p_exp(-{0})", {"logistic(-{0})"}}},
      {Op::kClip,
       {"{0} < {least} ? {least} : {0} > {most} ? {most} : {0}",
        {"({0} >= {least} && {0} <= {most} ? Real{1} : Real{0})"}}},
      {Op::kSub, {"{0} - {1}", {"1", "-1"}}},
      {Op::kDiv, {"{0} / {1}", {"1 / {1}", "-{y} / {1}"}}},
      {Op::kPow,
       {"std::pow({0}, {1})",
        {"({1} == 0 ? Real{0} : {1} * std::pow({0}, {1} - 1))",
         "({0} > 0 ? {y} * std::log({0}) : Real{0})"}}},
      {Op::kMaximum,
       {"std::max({0}, {1})",
        {"({0} == {1} ? Real{0.5} : {0} > {1} ? Real{1} : Real{0})",
         "({0} == {1} ? Real{0.5} : {1} > {0} ? Real{1} : Real{0})"}}},
      {Op::kMinimum,
       {"std::min({0}, {1})",
        {"({0} == {1} ? Real{0.5} : {0} < {1} ? Real{1} : Real{0})",
         "({0} == {1} ? Real{0.5} : {1} < {0} ? Real{1} : Real{0})"}}},
      {Op::kLess, {"{0} < {1}"}},
      {Op::kLessEqual, {"{0} <= {1}"}},
      {Op::kEqual, {"{0} == {1}"}},
      {Op::kLogicalAnd, {"{0} && {1}"}},
      {Op::kLogicalOr, {"{0} || {1}"}},
      {Op::kLogicalNot, {"!{0}"}},
      {Op::kWhere, {"{0} ? {1} : {2}", {"", "({0} ? Real{1} : Real{0})", "({0} ? Real{0} : Real{1})"}}},
      {Op::kCast, {"static_cast<int32_t>({0})"}},
      {Op::kStopGradient, {"{0}"}},
  };
}

const std::map<Op, Formula>& formulas() {
  static const std::map<Op, Formula> all = table();
  return all;
}

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size()))
    text.replace(at, mark.size(), by);
  return text;
}

// The formula with pointers and attributes in place, for loops(); what stands in braces behind Real is a number.
std::string filled(const Call& c, std::string text) {
  for (const ir::Attribute& a : c.node().attributes) {
    const std::string mark = "{" + a.name + "}";
    if (const double* number = std::get_if<double>(&a.value)) text = replaced(text, mark, real(*number));
    if (const std::string* word = std::get_if<std::string>(&a.value)) text = replaced(text, mark, *word);
  }
  const size_t inputs = c.step.inputs.size();
  text = replaced(text, "Real{", "Real<");
  for (size_t i = 0; i < inputs; ++i)
    text = replaced(text, fmt::format("{{{}}}", i), fmt::format("{}[@{}]", c.x(i), i));
  text = replaced(text, "{y}", fmt::format("{}[@{}]", c.y(), inputs));
  return replaced(text, "Real<", "Real{");
}

std::vector<Operand> operands(const Call& c) {
  std::vector<Operand> all;
  for (size_t i = 0; i < c.step.inputs.size(); ++i) all.push_back(broadcast(c.in(i).sizes, c.result().sizes));
  all.push_back({.strides = strides_of(c.result().sizes)});
  return all;
}

void formula_forward(const Call& c) {
  const std::string value = filled(c, formulas().at(c.node().op).value);
  loops(c, c.result().sizes, operands(c), {fmt::format("{}[@{}] = {};", c.y(), c.step.inputs.size(), value)});
}

void formula_backward(const Call& c) {
  const std::vector<std::string>& slopes = formulas().at(c.node().op).slopes;
  std::vector<std::string> statements;
  for (size_t i = 0; i < slopes.size(); ++i) {
    if (!c.wants(i) || slopes[i].empty()) continue;
    const std::string g = fmt::format("{}[@{}]", c.g(), c.step.inputs.size());
    const std::string to = fmt::format("{}[@{}]", c.dx(i), i);
    if (slopes[i] == "1" || slopes[i] == "-1") {
      const char* const sign = slopes[i] == "1" ? "" : "-";
      statements.push_back(c.begins(i) ? fmt::format("{} = {}{};", to, sign, g)
                                       : fmt::format("{} {}= {};", to, *sign == 0 ? "+" : "-", g));
      continue;
    }
    // A slope that begins with a quotient or sign is a factor all the same.
    const bool plain = slopes[i].starts_with("1 / ") || slopes[i].starts_with("-");
    const std::string slope = filled(c, slopes[i]);
    statements.push_back(slopes[i].starts_with("1 / ")
                             ? fmt::format("{} {} {} / {};", to, c.adds(i), g, slope.substr(4))
                         : plain ? c.begins(i) ? fmt::format("{} = {} * {};", to, g, slope)
                                               : fmt::format("{} -= {} * {};", to, g, slope.substr(1))
                                 : fmt::format("{} {} {} * {};", to, c.adds(i), g, slope));
  }
  loops(c, c.result().sizes, operands(c), statements);
}

// A gradient of every place once; a broadcast input's is a sum.
bool formula_sets(const Call& c, size_t i) {
  const std::vector<std::string>& slopes = formulas().at(c.node().op).slopes;
  return i < slopes.size() && !slopes[i].empty() && c.in(i).sizes == c.result().sizes;
}

// Channels and places: canonical values have as many places as elements.
std::vector<std::string> channels_and_places(const Value& v) {
  const size_t first = v.sizes.empty() || v.sizes[0] != ir::kBatch ? 0 : 1;
  const bool last = v.order == Order::kChannelsLast && v.sizes.size() > 2;
  const int64_t all = count_of(v.sizes, first, v.sizes.size()).count, channels = last ? v.sizes.back() : 1;
  return {std::to_string(channels), std::to_string(all / channels)};
}

void dropout(const Call& c, const std::string& from, const std::string& to, bool sets) {
  const Count rows = count_of(c.result().sizes, 0, c.result().sizes.empty() ? 0 : 1);
  std::vector<std::string> constants = channels_and_places(c.result());
  constants.emplace_back(sets ? "true" : "false");
  call(c, "dropout", constants,
       {rows.rows ? "first" : "0", rows.rows ? "rows" : "1", fmt::format("dropout_key({})", c.step.node),
        fmt::format("dropout_rate({})", c.node().real("rate")), from, to});
}
bool always(const Call&, size_t) { return true; }

void dropout_forward(const Call& c) {
  if (c.graph.trains()) return dropout(c, c.x(), c.y(), true);
  c.out.line(fmt::format("std::copy({0}, {0} + {1}, {2});", c.x(), count_of(c.result().sizes).text(), c.y()));
}
void dropout_backward(const Call& c) { dropout(c, c.g(), c.dx(), c.begins(0)); }

void constant(const Call& c) { c.out.line(fmt::format("{}[0] = {};", c.y(), real(c.node().real("value")))); }

void parameter(const Call& c) {
  c.out.line(fmt::format("std::copy({0}, {0} + {1}, {2});", c.w("weight"), count_of(c.result().sizes).text(),
                         c.y()));
}
void parameter_backward(const Call& c) {
  if (!c.trains("weight")) return;
  const Operand own{.strides = strides_of(c.result().sizes)};
  loops(c, c.result().sizes, {own}, {fmt::format("{}[@0] += {}[@0];", c.dw("weight"), c.g())});
}

bool mentions(const std::vector<std::string>& slopes, const std::string& mark) {
  for (const std::string& slope : slopes) {
    if (replaced(slope, "Real{", "").find(mark) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

OpRows pointwise_rows() {
  OpRows rows = {
      {Op::kDropout, {dropout_forward, dropout_backward, false, false, nullptr, nullptr, nullptr, always}},
      {Op::kConstant, {.forward = constant}},
      {Op::kParameter, {parameter, parameter_backward, false, false}},
  };
  for (const auto& [op, formula] : formulas()) {
    OpRow row{.forward = formula_forward, .sets = formula_sets};
    if (!formula.slopes.empty()) row.backward = formula_backward;
    row.reads_inputs = mentions(formula.slopes, "{0}") || mentions(formula.slopes, "{1}");
    row.reads_output = mentions(formula.slopes, "{y}");
    rows[op] = row;
  }
  return rows;
}

}  // namespace bakeoff::emit::native
