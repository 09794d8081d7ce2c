// A table of formulas. Op table, referee, emitters and random cases are made from its rows. The referee
// computes a row's formula for any input, so exponentials must not overflow (logistic, log_1p_exp), and NaN
// must stay NaN.
//
// `kinks` are the inputs at which a derivative jumps. A framework that is right may round an input to the
// other side, so the proof asks there what both sides would give (referee/eval_options.h). A kink that is
// missing here makes correct contenders fail, now and then.

#include "ir/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

namespace bakeoff::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The exponential's argument is never positive.
double logistic(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}
double log_1p_exp(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

using X = const double*;  // inputs, or attributes
using Points = std::vector<double>;

std::vector<Elementwise> arithmetic() {
  return {
      {.op = Op::kNeg,
       .name = "neg",
       .doc = "-x.",
       .value = [](X x, X) { return -x[0]; },
       .slope = [](size_t, X, double, X) { return -1.0; },
       .spellings = {{"-{0}"}, {"-{0}"}, {"-{0}"}, {"ops.negative({0})"}, {"-{0}"}, {"Neg({0})"}}},
      {.op = Op::kAbs,
       .name = "abs",
       .doc = "|x|; the gradient at 0 is 0.",
       .value = [](X x, X) { return std::abs(x[0]); },
       .slope = [](size_t, X x, double, X) { return x[0] > 0   ? 1.0
                                                    : x[0] < 0 ? -1.0
                                                               : 0.0; },
       .kinks = [](X) { return Points{0}; },
       .spellings = {{"torch.abs({0})"},
                     {"jnp.abs({0})"},
                     {"tf.abs({0})"},
                     {"ops.abs({0})"},
                     {"torch::abs({0})"},
                     {"Abs({0})"}}},
      {.op = Op::kSign,
       .name = "sign",
       .doc = "-1, 0 or 1; the gradient is 0.",
       .value = [](X x, X) { return x[0] > 0   ? 1.0
                                    : x[0] < 0 ? -1.0
                                               : x[0]; },
       .spellings = {{"torch.sign({0})"},
                     {"jnp.sign({0})"},
                     {"tf.sign({0})"},
                     {"ops.sign({0})"},
                     {"torch::sign({0})"},
                     {"Sign({0})"}}},
      {.op = Op::kFloor,
       .name = "floor",
       .doc = "The largest integer that is at most x; the gradient is 0.",
       .value = [](X x, X) { return std::floor(x[0]); },
       .spellings = {{"torch.floor({0})"},
                     {"jnp.floor({0})"},
                     {"tf.floor({0})"},
                     {"ops.floor({0})"},
                     {"torch::floor({0})"},
                     {"Floor({0})"}}},
      {.op = Op::kCeil,
       .name = "ceil",
       .doc = "The smallest integer that is at least x; the gradient is 0.",
       .value = [](X x, X) { return std::ceil(x[0]); },
       .spellings = {{"torch.ceil({0})"},
                     {"jnp.ceil({0})"},
                     {"tf.math.ceil({0})"},
                     {"ops.ceil({0})"},
                     {"torch::ceil({0})"},
                     {"Ceil({0})"}}},
      {.op = Op::kRound,
       .name = "round",
       .doc = "The nearest integer, halves to the even one; the gradient is 0.",
       .value = [](X x, X) { return std::nearbyint(x[0]); },
       .spellings = {{"torch.round({0})"},
                     {"jnp.round({0})"},
                     {"tf.round({0})"},
                     {"ops.round({0})"},
                     {"torch::round({0})"},
                     {"Round({0})"}}},
      {.op = Op::kSquare,
       .name = "square",
       .doc = "x^2.",
       .value = [](X x, X) { return x[0] * x[0]; },
       .slope = [](size_t, X x, double, X) { return 2 * x[0]; },
       .spellings = {{"torch.square({0})"},
                     {"jnp.square({0})"},
                     {"tf.square({0})"},
                     {"ops.square({0})"},
                     {"torch::square({0})"},
                     {"Mul({0}, {0})"}}},
      {.op = Op::kSqrt,
       .name = "sqrt",
       .doc = "The square root of x.",
       .domain = Domain::kPositive,
       .value = [](X x, X) { return std::sqrt(x[0]); },
       .slope = [](size_t, X, double y, X) { return 0.5 / y; },
       .spellings = {{"torch.sqrt({0})"},
                     {"jnp.sqrt({0})"},
                     {"tf.sqrt({0})"},
                     {"ops.sqrt({0})"},
                     {"torch::sqrt({0})"},
                     {"Sqrt({0})"}}},
      {.op = Op::kRsqrt,
       .name = "rsqrt",
       .doc = "1 / sqrt(x).",
       .domain = Domain::kPositive,
       .value = [](X x, X) { return 1 / std::sqrt(x[0]); },
       .slope = [](size_t, X x, double y, X) { return -0.5 * y / x[0]; },
       .spellings = {{"torch.rsqrt({0})"},
                     {"lax.rsqrt({0})"},
                     {"tf.math.rsqrt({0})"},
                     {"ops.rsqrt({0})"},
                     {"torch::rsqrt({0})"},
                     {"Reciprocal(Sqrt({0}))"}}},
      {.op = Op::kReciprocal,
       .name = "reciprocal",
       .doc = "1 / x.",
       .domain = Domain::kPositive,
       .value = [](X x, X) { return 1 / x[0]; },
       .slope = [](size_t, X, double y, X) { return -y * y; },
       .spellings = {{"torch.reciprocal({0})"},
                     {"jnp.reciprocal({0})"},
                     {"tf.math.reciprocal({0})"},
                     {"ops.reciprocal({0})"},
                     {"torch::reciprocal({0})"},
                     {"Reciprocal({0})"}}},
      {.op = Op::kExp,
       .name = "exp",
       .doc = "e^x.",
       .value = [](X x, X) { return std::exp(x[0]); },
       .slope = [](size_t, X, double y, X) { return y; },
       .spellings = {{"torch.exp({0})"},
                     {"jnp.exp({0})"},
                     {"tf.exp({0})"},
                     {"ops.exp({0})"},
                     {"torch::exp({0})"},
                     {"Exp({0})"}}},
      {.op = Op::kExpm1,
       .name = "expm1",
       .doc = "e^x - 1.",
       .value = [](X x, X) { return std::expm1(x[0]); },
       .slope = [](size_t, X, double y, X) { return y + 1; },
       .spellings = {{"torch.expm1({0})"},
                     {"jnp.expm1({0})"},
                     {"tf.math.expm1({0})"},
                     {"ops.expm1({0})"},
                     {"torch::expm1({0})"},
                     {"Sub(Exp({0}), 1)"}}},
      {.op = Op::kLog,
       .name = "log",
       .doc = "The natural logarithm of x.",
       .domain = Domain::kPositive,
       .value = [](X x, X) { return std::log(x[0]); },
       .slope = [](size_t, X x, double, X) { return 1 / x[0]; },
       .spellings = {{"torch.log({0})"},
                     {"jnp.log({0})"},
                     {"tf.math.log({0})"},
                     {"ops.log({0})"},
                     {"torch::log({0})"},
                     {"Log({0})"}}},
      {.op = Op::kLog1p,
       .name = "log1p",
       .doc = "The natural logarithm of 1 + x.",
       .domain = Domain::kPositive,
       .value = [](X x, X) { return std::log1p(x[0]); },
       .slope = [](size_t, X x, double, X) { return 1 / (1 + x[0]); },
       .spellings = {{"torch.log1p({0})"},
                     {"jnp.log1p({0})"},
                     {"tf.math.log1p({0})"},
                     {"ops.log1p({0})"},
                     {"torch::log1p({0})"},
                     {"Log(Add({0}, 1))"}}},
      {.op = Op::kSin,
       .name = "sin",
       .doc = "Sine of x in radians.",
       .value = [](X x, X) { return std::sin(x[0]); },
       .slope = [](size_t, X x, double, X) { return std::cos(x[0]); },
       .spellings = {{"torch.sin({0})"},
                     {"jnp.sin({0})"},
                     {"tf.sin({0})"},
                     {"ops.sin({0})"},
                     {"torch::sin({0})"},
                     {"Sin({0})"}}},
      {.op = Op::kCos,
       .name = "cos",
       .doc = "Cosine of x in radians.",
       .value = [](X x, X) { return std::cos(x[0]); },
       .slope = [](size_t, X x, double, X) { return -std::sin(x[0]); },
       .spellings = {{"torch.cos({0})"},
                     {"jnp.cos({0})"},
                     {"tf.cos({0})"},
                     {"ops.cos({0})"},
                     {"torch::cos({0})"},
                     {"Cos({0})"}}},
      {.op = Op::kAtan,
       .name = "atan",
       .doc = "The angle in radians between -pi/2 and pi/2 whose tangent is x.",
       .value = [](X x, X) { return std::atan(x[0]); },
       .slope = [](size_t, X x, double, X) { return 1 / (1 + x[0] * x[0]); },
       .spellings = {{"torch.atan({0})"},
                     {"jnp.arctan({0})"},
                     {"tf.atan({0})"},
                     {"ops.arctan({0})"},
                     {"torch::atan({0})"},
                     {"Atan({0})"}}},
      {.op = Op::kErf,
       .name = "erf",
       .doc = "2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
       .value = [](X x, X) { return std::erf(x[0]); },
       .slope = [](size_t, X x, double, X) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x[0] * x[0]); },
       .spellings = {{"torch.erf({0})"},
                     {"lax.erf({0})"},
                     {"tf.math.erf({0})"},
                     {"ops.erf({0})"},
                     {"torch::erf({0})"},
                     {"Erf({0})"}}},
  };
}

std::vector<Elementwise> activations() {
  return {
      {.op = Op::kSilu,
       .name = "silu",
       .doc = "x / (1 + exp(-x)), also called swish.",
       .value = [](X x, X) { return x[0] * logistic(x[0]); },
       .slope =
           [](size_t, X x, double y, X) {
             const double s = logistic(x[0]);
             return s + y * (1 - s);
           },
       .spellings = {{"F.silu({0})"},
                     {"jax.nn.silu({0})"},
                     {"tf.nn.silu({0})"},
                     {"ops.silu({0})"},
                     {"torch::silu({0})"},
                     {"Mul({0}, Sigmoid({0}))"}}},
      {.op = Op::kHardSwish,
       .name = "hard_swish",
       .doc = "x min(max(x + 3, 0), 6) / 6.",
       .value = [](X x, X) { return x[0] * std::clamp(x[0] + 3, 0.0, 6.0) / 6; },
       .slope = [](size_t, X x, double,
                   X) { return x[0] <= -3  ? 0.0
                               : x[0] >= 3 ? 1.0
                                           : (2 * x[0] + 3) / 6; },
       .kinks =
           [](X) {
             return Points{-3, 3};
           },
       .spellings = {{"F.hardswish({0})"},
                     {"jax.nn.hard_swish({0})"},
                     {"hard_swish({0})"},
                     {"ops.hard_swish({0})"},
                     {"torch::hardswish({0})"},
                     {"Mul({0}, Div(Clip(Add({0}, 3), 0, 6), 6))"}}},
      {.op = Op::kHardSigmoid,
       .name = "hard_sigmoid",
       .doc = "min(max(alpha x + beta, 0), 1); the gradient where it is 0 or 1 is 0.",
       .attributes = {real("alpha", 1.0 / 6, "factor"), real("beta", 0.5, "added")},
       .value = [](X x, X a) { return std::clamp(a[0] * x[0] + a[1], 0.0, 1.0); },
       .slope = [](size_t, X, double y, X a) { return y > 0 && y < 1 ? a[0] : 0.0; },
       .kinks =
           [](X a) {
             return Points{-a[1] / a[0], (1 - a[1]) / a[0]};
           },
       .spellings = {{"torch.clamp({alpha} * {0} + {beta}, 0, 1)"},
                     {"hard_sigmoid({0}, {alpha}, {beta})"},
                     {"hard_sigmoid({0}, {alpha}, {beta})"},
                     {"hard_sigmoid({0}, {alpha}, {beta})"},
                     {"torch::clamp({alpha} * {0} + {beta}, 0, 1)"},
                     {"Clip(Add(Mul({0}, {alpha}), {beta}), 0, 1)"}}},
      {.op = Op::kElu,
       .name = "elu",
       .doc = "x where x > 0, else alpha (exp(x) - 1).",
       .attributes = {real("alpha", 1, "factor of the negative side")},
       .value = [](X x, X a) { return x[0] > 0 ? x[0] : a[0] * std::expm1(x[0]); },
       .slope = [](size_t, X x, double y, X a) { return x[0] > 0 ? 1.0 : y + a[0]; },
       .kinks = [](X a) { return a[0] == 1 ? Points{} : Points{0}; },
       .spellings = {{"F.elu({0}, {alpha})"},
                     {"jax.nn.elu({0}, {alpha})"},
                     {"elu({0}, {alpha})"},
                     {"ops.elu({0}, {alpha})"},
                     {"torch::elu({0}, {alpha})"},
                     {"Where(Greater({0}, 0), {0}, Mul(Sub(Exp({0}), 1), {alpha}))"}}},
      {.op = Op::kSelu,
       .name = "selu",
       .doc =
           "1.0507009873554805 (x where x > 0, else 1.6732632423543772 (exp(x) - 1)) (Klambauer et al. 2017).",
       .value =
           [](X x, X) {
             return 1.0507009873554804934 * (x[0] > 0 ? x[0] : 1.6732632423543772848 * std::expm1(x[0]));
           },
       .slope =
           [](size_t, X x, double y, X) {
             return x[0] > 0 ? 1.0507009873554804934 : y + 1.0507009873554804934 * 1.6732632423543772848;
           },
       .kinks = [](X) { return Points{0}; },
       .spellings = {{"F.selu({0})"},
                     {"jax.nn.selu({0})"},
                     {"tf.nn.selu({0})"},
                     {"ops.selu({0})"},
                     {"torch::selu({0})"},
                     {"Mul(Where(Greater({0}, 0), {0}, Mul(Sub(Exp({0}), 1), 1.6732632423543772)), "
                      "1.0507009873554805)"}}},
      {.op = Op::kLeakyRelu,
       .name = "leaky_relu",
       .doc = "x where x > 0, else slope x.",
       .attributes = {real("slope", 0.01, "of the negative side")},
       .value = [](X x, X a) { return x[0] > 0 ? x[0] : a[0] * x[0]; },
       .slope = [](size_t, X x, double, X a) { return x[0] > 0 ? 1.0 : a[0]; },
       .kinks = [](X) { return Points{0}; },
       .spellings = {{"F.leaky_relu({0}, {slope})"},
                     {"jax.nn.leaky_relu({0}, {slope})"},
                     {"leaky_relu({0}, {slope})"},
                     {"leaky_relu({0}, {slope})"},
                     {"torch::leaky_relu({0}, {slope})"},
                     {"Where(Greater({0}, 0), {0}, Mul({0}, {slope}))"}}},
      {.op = Op::kSoftplus,
       .name = "softplus",
       .doc = "log(1 + exp(x)).",
       .value = [](X x, X) { return log_1p_exp(x[0]); },
       .slope = [](size_t, X x, double, X) { return logistic(x[0]); },
       .spellings = {{"softplus({0})"},
                     {"jax.nn.softplus({0})"},
                     {"tf.math.softplus({0})"},
                     {"ops.softplus({0})"},
                     {"torch::logaddexp({0}, torch::zeros_like({0}))"},
                     {"Softplus({0})"}}},
      {.op = Op::kMish,
       .name = "mish",
       .doc = "x tanh(log(1 + exp(x))).",
       .value = [](X x, X) { return x[0] * std::tanh(log_1p_exp(x[0])); },
       .slope =
           [](size_t, X x, double, X) {
             const double t = std::tanh(log_1p_exp(x[0]));
             return t + x[0] * (1 - t * t) * logistic(x[0]);
           },
       .spellings = {{"F.mish({0})"},
                     {"jax.nn.mish({0})"},
                     {"mish({0})"},
                     {"mish({0})"},
                     {"torch::mish({0})"},
                     {"Mul({0}, Tanh(Softplus({0})))"}}},
      {.op = Op::kSoftsign,
       .name = "softsign",
       .doc = "x / (1 + |x|).",
       .value = [](X x, X) { return x[0] / (1 + std::abs(x[0])); },
       .slope = [](size_t, X x, double, X) { return 1 / ((1 + std::abs(x[0])) * (1 + std::abs(x[0]))); },
       .spellings = {{"F.softsign({0})"},
                     {"jax.nn.soft_sign({0})"},
                     {"tf.nn.softsign({0})"},
                     {"ops.softsign({0})"},
                     {"torch::nn::functional::softsign({0})"},
                     {"Div({0}, Add(Abs({0}), 1))"}}},
      {.op = Op::kLogSigmoid,
       .name = "log_sigmoid",
       .doc = "-log(1 + exp(-x)).",
       .value = [](X x, X) { return -log_1p_exp(-x[0]); },
       .slope = [](size_t, X x, double, X) { return logistic(-x[0]); },
       .spellings = {{"F.logsigmoid({0})"},
                     {"jax.nn.log_sigmoid({0})"},
                     {"tf.math.log_sigmoid({0})"},
                     {"ops.log_sigmoid({0})"},
                     {"torch::log_sigmoid({0})"},
                     {"Neg(Softplus(Neg({0})))"}}},
      {.op = Op::kClip,
       .name = "clip",
       .doc = "min(max(x, least), most).",
       .attributes = {real("least", -kInfinity, "smallest output"),
                      real("most", kInfinity, "largest output")},
       .value = [](X x, X a) { return x[0] < a[0]   ? a[0]
                                      : x[0] > a[1] ? a[1]
                                                    : x[0]; },
       .slope = [](size_t, X x, double, X a) { return x[0] >= a[0] && x[0] <= a[1] ? 1.0 : 0.0; },
       .kinks =
           [](X a) {
             return Points{a[0], a[1]};
           },
       .spellings = {{"torch.clamp({0}, {least}, {most})"},
                     {"jnp.clip({0}, {least}, {most})"},
                     {"tf.clip_by_value({0}, {least}, {most})"},
                     {"ops.clip({0}, {least}, {most})"},
                     {"torch::clamp({0}, {least}, {most})"},
                     {"Clip({0}, {least}, {most})"}}},
  };
}

std::vector<Elementwise> pairs() {
  return {
      {.op = Op::kSub,
       .name = "sub",
       .doc = "a - b; sizes are equal or 1.",
       .inputs = 2,
       .value = [](X x, X) { return x[0] - x[1]; },
       .slope = [](size_t i, X, double, X) { return i == 0 ? 1.0 : -1.0; },
       .spellings = {{"{0} - {1}"},
                     {"{0} - {1}"},
                     {"{0} - {1}"},
                     {"ops.subtract({0}, {1})"},
                     {"{0} - {1}"},
                     {"Sub({0}, {1})"}}},
      {.op = Op::kDiv,
       .name = "div",
       .doc = "a / b; sizes are equal or 1.",
       .inputs = 2,
       .domain = Domain::kPositive,
       .value = [](X x, X) { return x[0] / x[1]; },
       .slope = [](size_t i, X x, double y, X) { return i == 0 ? 1 / x[1] : -y / x[1]; },
       .spellings = {{"{0} / {1}"},
                     {"{0} / {1}"},
                     {"{0} / {1}"},
                     {"ops.divide({0}, {1})"},
                     {"{0} / {1}"},
                     {"Div({0}, {1})"}}},
      {.op = Op::kPow,
       .name = "pow",
       .doc = "a^b for a > 0; sizes are equal or 1.",
       .inputs = 2,
       .domain = Domain::kPositive,
       .value = [](X x, X) { return std::pow(x[0], x[1]); },
       .slope =
           [](size_t i, X x, double y, X) {
             if (i == 1) return x[0] > 0 ? y * std::log(x[0]) : 0.0;
             return x[1] == 0 ? 0.0 : x[1] * std::pow(x[0], x[1] - 1);
           },
       .spellings = {{"{0} ** {1}"},
                     {"{0} ** {1}"},
                     {"{0} ** {1}"},
                     {"ops.power({0}, {1})"},
                     {"torch::pow({0}, {1})"},
                     {"Pow({0}, {1})"}}},
      {.op = Op::kMaximum,
       .name = "maximum",
       .doc =
           "The larger of a and b; where they are equal either takes half of the gradient. Sizes are equal or 1.",
       .inputs = 2,
       .value = [](X x, X) { return std::max(x[0], x[1]); },
       .slope = [](size_t i, X x, double,
                   X) { return x[0] == x[1]                ? 0.5
                               : (x[0] > x[1]) == (i == 0) ? 1.0
                                                           : 0.0; },
       .spellings = {{"torch.maximum({0}, {1})", "torch.clamp({0}, min={1})"},
                     {"jnp.maximum({0}, {1})"},
                     {"tf.maximum({0}, {1})"},
                     {"ops.maximum({0}, {1})"},
                     {"torch::maximum({0}, {1})", "torch::clamp_min({0}, {1})"},
                     {"Max({0}, {1})"}}},
      {.op = Op::kMinimum,
       .name = "minimum",
       .doc =
           "The smaller of a and b; where they are equal either takes half of the gradient. Sizes are equal or 1.",
       .inputs = 2,
       .value = [](X x, X) { return std::min(x[0], x[1]); },
       .slope = [](size_t i, X x, double,
                   X) { return x[0] == x[1]                ? 0.5
                               : (x[0] < x[1]) == (i == 0) ? 1.0
                                                           : 0.0; },
       .spellings = {{"torch.minimum({0}, {1})", "torch.clamp({0}, max={1})"},
                     {"jnp.minimum({0}, {1})"},
                     {"tf.minimum({0}, {1})"},
                     {"ops.minimum({0}, {1})"},
                     {"torch::minimum({0}, {1})", "torch::clamp_max({0}, {1})"},
                     {"Min({0}, {1})"}}},
      {.op = Op::kLess,
       .name = "less",
       .doc = "Whether a < b; sizes are equal or 1.",
       .inputs = 2,
       .kind = ElementKind::kCompare,
       .value = [](X x, X) { return x[0] < x[1] ? 1.0 : 0.0; },
       .spellings = {{"{0} < {1}"},
                     {"{0} < {1}"},
                     {"{0} < {1}"},
                     {"ops.less({0}, {1})"},
                     {"{0} < {1}"},
                     {"Less({0}, {1})"}}},
      {.op = Op::kLessEqual,
       .name = "less_equal",
       .doc = "Whether a <= b; sizes are equal or 1.",
       .inputs = 2,
       .kind = ElementKind::kCompare,
       .value = [](X x, X) { return x[0] <= x[1] ? 1.0 : 0.0; },
       .spellings = {{"{0} <= {1}"},
                     {"{0} <= {1}"},
                     {"{0} <= {1}"},
                     {"ops.less_equal({0}, {1})"},
                     {"{0} <= {1}"},
                     {"LessOrEqual({0}, {1})"}}},
      {.op = Op::kEqual,
       .name = "equal",
       .doc = "Whether a = b; sizes are equal or 1.",
       .inputs = 2,
       .kind = ElementKind::kCompare,
       .value = [](X x, X) { return x[0] == x[1] ? 1.0 : 0.0; },
       .spellings = {{"{0} == {1}"},
                     {"{0} == {1}"},
                     {"tf.equal({0}, {1})"},
                     {"ops.equal({0}, {1})"},
                     {"{0} == {1}"},
                     {"Equal({0}, {1})"}}},
      {.op = Op::kLogicalAnd,
       .name = "logical_and",
       .doc = "Whether a and b hold; sizes are equal or 1.",
       .inputs = 2,
       .kind = ElementKind::kLogic,
       .value = [](X x, X) { return x[0] * x[1]; },
       .spellings = {{"torch.logical_and({0}, {1})"},
                     {"jnp.logical_and({0}, {1})"},
                     {"tf.logical_and({0}, {1})"},
                     {"ops.logical_and({0}, {1})"},
                     {"torch::logical_and({0}, {1})"},
                     {"And({0}, {1})"}}},
      {.op = Op::kLogicalOr,
       .name = "logical_or",
       .doc = "Whether a or b holds; sizes are equal or 1.",
       .inputs = 2,
       .kind = ElementKind::kLogic,
       .value = [](X x, X) { return std::max(x[0], x[1]); },
       .spellings = {{"torch.logical_or({0}, {1})"},
                     {"jnp.logical_or({0}, {1})"},
                     {"tf.logical_or({0}, {1})"},
                     {"ops.logical_or({0}, {1})"},
                     {"torch::logical_or({0}, {1})"},
                     {"Or({0}, {1})"}}},
      {.op = Op::kLogicalNot,
       .name = "logical_not",
       .doc = "Whether x does not hold.",
       .kind = ElementKind::kLogic,
       .value = [](X x, X) { return 1 - x[0]; },
       .spellings = {{"torch.logical_not({0})"},
                     {"jnp.logical_not({0})"},
                     {"tf.logical_not({0})"},
                     {"ops.logical_not({0})"},
                     {"torch::logical_not({0})"},
                     {"Not({0})"}}},
  };
}

}  // namespace

const std::vector<Elementwise>& elementwise_ops() {
  static const std::vector<Elementwise> table = [] {
    std::vector<Elementwise> rows = arithmetic();
    for (auto& part : {activations(), pairs()}) rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return table;
}

const Elementwise* find_elementwise(Op op) {
  static const std::map<Op, const Elementwise*> by_op = [] {
    std::map<Op, const Elementwise*> all;
    for (const Elementwise& row : elementwise_ops()) all[row.op] = &row;
    return all;
  }();
  const auto found = by_op.find(op);
  return found == by_op.end() ? nullptr : found->second;
}

bool elementwise_of_one(Op op) {
  const Elementwise* const row = find_elementwise(op);
  return row != nullptr && row->inputs == 1;
}

std::vector<double> reals(const Node& node) {
  std::vector<double> values;
  for (const Attribute& a : node.attributes) values.push_back(std::get<double>(a.value));
  return values;
}

}  // namespace bakeoff::ir
