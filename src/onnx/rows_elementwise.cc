// Ops on elements. Most have the same meaning in the IR (unary, binary); the others are spelled out with
// those. Integers that depend on the inputs can only be ids, classes and places in the IR: arithmetic with
// them is refused.
//
// Exporters write `x W + b` as MatMul and Add; with_bias() puts b back into the linear layer, if no other
// node reads the product. Otherwise every framework would print a layer without bias and an addition.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

Result<Values> one(Result<Value> value) {
  if (!value) return value.error();
  return Values{*value};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A value of the graph as floats or as it is; for an op that only knows floats.
Result<Value> floats(const Value& v) {
  if (v.is_graph() && v.kind == Kind::kInt)
    return refused("computes with integers that depend on the inputs");
  return v;
}

// Opset 6: the second input begins at an axis of the first.
Status old_broadcast(const Call& call) {
  if (call.opset < 7 && call.has_attribute("axis") && call.integer("broadcast", 0) != 0)
    return refused("broadcasts from an axis on, as ONNX did before opset 7");
  return Done{};
}

// Rows of ops that have the same meaning in the IR.
Result<Values> unary(Mapper& m, const Call& call, const char* op) {
  TRY(const Value x, floats(call.in(0)));
  return one(m.elementwise(op, {x}));
}
// Exporters write a group norm as an instance norm of its groups, and the scales of channels as arithmetic.
void train_scale_of_norm(Mapper& m, const Call& call) {
  for (const size_t at : {size_t{0}, size_t{1}}) {
    const Value &x = call.in(at), &scale = call.in(1 - at);
    if (!x.is_graph() || !scale.is_const() || x.layout.rank() < 3) continue;
    const GraphNode* made = m.layer_of(x);
    while (made != nullptr && (made->op == "reshape" || (made->op == "mul" && call.op() == "Add")))
      made = m.graph.producer(made->inputs[0]);
    Shape wanted(x.layout.rank(), 1), shape = scale.at[0]->shape;
    wanted[1] = x.layout.dims[1];
    shape.insert(shape.begin(), wanted.size() - std::min(wanted.size(), shape.size()), 1);
    if (made != nullptr && made->source == "InstanceNormalization" && shape == wanted)
      m.train_everywhere(scale);
  }
}

// Integers as floats: what they were computed from, or rows of a table whose row i is i.
Result<Value> numbers_of(Mapper& m, const Value& ids, bool truths = false) {
  if (const auto found = m.counted.find(ids.name); found != m.counted.end()) return found->second;
  if (ids.bound < 1 || ids.bound > (1 << 20))
    return refused("computes with integers that depend on the inputs");
  if (ids.bound == 2 && !truths)
    m.notes.insert(
        "integers that look up no table are taken for 0 and 1: --input 'x=i32[8,16]<100' says more");
  Array table{.kind = Kind::kFloat, .shape = {ids.bound, 1}};
  for (int64_t i = 0; i < ids.bound; ++i) table.reals.push_back(static_cast<double>(i));
  TRY(const std::string name, m.frozen("integers", std::make_shared<Array>(std::move(table))));
  Layout wide = ids.layout;
  wide.dims.push_back(1);
  return m.reshaped(m.make("embedding", {ids.name}, wide, {}, {{"weight", name}}), ids.layout);
}

// For an op that compares.
Result<Value> compared(Mapper& m, const Value& v) {
  return v.is_graph() && v.kind == Kind::kInt ? numbers_of(m, v) : Result<Value>(v);
}

Result<Values> binary(Mapper& m, const Call& call, const char* op, Kind kind) {
  CHECK_OK(old_broadcast(call));
  if (call.op() == "Mul") train_scale_of_norm(m, call);
  TRY(const Value a, kind == Kind::kBool ? compared(m, call.in(0)) : floats(call.in(0)));
  TRY(const Value b, kind == Kind::kBool ? compared(m, call.in(1)) : floats(call.in(1)));
  return one(m.elementwise(op, {a, b}, {}, kind));
}

Result<Value> fold_left(Mapper& m, const Call& call, const std::string& op) {
  Value sum = call.in(0);
  TRY(sum, floats(sum));
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    TRY(const Value next, floats(call.in(i)));
    TRY(sum, m.elementwise(op, {sum, next}));
  }
  return sum;
}

// A bias that is added to a linear layer without one.
Result<std::optional<Value>> with_bias(Mapper& m, const Call& call) {
  for (const size_t at : {size_t{0}, size_t{1}}) {
    const Value &x = call.in(at), &bias = call.in(1 - at);
    if (!x.is_graph() || !bias.is_const() || !bias.fixed() || !bias.at[0]->is_float()) continue;
    GraphNode* layer = m.layer_of(x);
    if (layer == nullptr || layer->op != "linear" || layer->params.size() != 1 ||
        !m.read_once(m.current_input(at)))
      continue;
    const int64_t features = layer->shape.back();
    if (x.layout.rank() == 0 || x.layout.holds_batch(x.layout.rank() - 1) || x.layout.dims.back() != features)
      continue;
    const Shape& shape = bias.at[0]->shape;
    if (shape.empty() || shape.back() != features || static_cast<int64_t>(bias.at[0]->size()) != features ||
        shape.size() > x.layout.rank())
      continue;
    if (bias.at[0]->has_origins() && !m.fits_slot(*bias.at[0])) continue;
    Value flat = bias;
    if (shape.size() != 1) flat.at[0] = flat.at[1] = shaped(*bias.at[0], {features});
    std::string wanted = layer->params[0].second;
    if (wanted.ends_with(".weight")) wanted.resize(wanted.size() - 7);
    const std::string source = m.source(flat);
    TRY(const std::string name, source.starts_with("onnx::") || source.empty()
                                    ? m.graph.parameter(wanted + ".bias", flat.at[0], source.empty(), source)
                                    : m.weight(flat, "bias"));
    layer->params.emplace_back("bias", name);
    return std::optional<Value>(x);
  }
  return std::optional<Value>();
}

Result<Values> add(Mapper& m, const Call& call) {
  CHECK_OK(old_broadcast(call));
  TRY(const auto layer, with_bias(m, call));
  if (layer) return Values{*layer};
  train_scale_of_norm(m, call);
  return one(fold_left(m, call, "add"));
}

Result<Values> mean(Mapper& m, const Call& call) {
  TRY(const Value sum, fold_left(m, call, "add"));
  if (call.inputs.size() == 1) return Values{sum};
  return one(m.scalar_op("mul", sum, 1.0 / static_cast<double>(call.inputs.size())));
}

Result<Values> power(Mapper& m, const Call& call) {
  CHECK_OK(old_broadcast(call));
  TRY(const Value x, floats(call.in(0)));
  TRY(const Value y, floats(call.in(1)));
  if (!x.is_graph() || !y.is_const() || !y.fixed() || y.at[0]->size() != 1 || m.tracked(y))
    return one(m.elementwise("pow", {x, y}));
  const double p = y.at[0]->real(0);
  if (y.at[0]->shape.size() > x.layout.rank()) return one(m.elementwise("pow", {x, y}));
  if (p == 1) return Values{x};
  if (p == 2) return one(m.elementwise("square", {x}));
  if (p == 0.5) return one(m.elementwise("sqrt", {x}));
  if (p == -0.5) return one(m.elementwise("rsqrt", {x}));
  if (p == -1) return one(m.elementwise("reciprocal", {x}));
  if (p == std::floor(p) && p > 2 && p <= 8) {  // for negative numbers too
    Value product = x;
    for (int i = 1; i < static_cast<int>(p); ++i) {
      TRY(product, m.elementwise("mul", {product, x}));
    }
    return Values{product};
  }
  return one(m.elementwise("pow", {x, y}));
}

// The remainder of the division of sizes, with the sign of x (fmod = 1).
Result<Values> remainder(Mapper& m, const Call& call) {
  if (call.integer("fmod", 0) != 1) return refused("its remainder has the sign of the divisor (fmod = 0)");
  TRY(const Value x, floats(call.in(0)));
  TRY(const Value y, floats(call.in(1)));
  TRY(const Value ratio, m.elementwise("div", {x, y}));
  TRY(Value whole, m.elementwise("abs", {ratio}));
  TRY(whole, m.elementwise("floor", {whole}));
  TRY(const Value sign, m.elementwise("sign", {ratio}));
  TRY(whole, m.elementwise("mul", {sign, whole}));
  TRY(whole, m.elementwise("mul", {whole, y}));
  return one(m.elementwise("sub", {x, whole}));
}

Result<Values> greater(Mapper& m, const Call& call, const char* op) {
  TRY(const Value a, compared(m, call.in(0)));
  TRY(const Value b, compared(m, call.in(1)));
  return one(m.elementwise(op, {b, a}, {}, Kind::kBool));
}

// A constant mask is a table of ones and zeros that is compared with a half.
Result<Value> bools(Mapper& m, const Value& v) {
  if (!v.is_const()) return v;
  Value table = v;
  for (ArrayPtr& at : table.at) {
    TRY(at, converted(at, Kind::kBool));
    TRY(at, converted(at, Kind::kFloat));
  }
  TRY(const Value numbers, m.as_value(table));
  return m.elementwise("less", {m.constant(of_real(0.5)), numbers}, {}, Kind::kBool);
}

Result<Values> logic(Mapper& m, const Call& call, const char* op) {
  TRY(const Value a, bools(m, call.in(0)));
  TRY(const Value b, bools(m, call.in(1)));
  return one(m.elementwise(op, {a, b}, {}, Kind::kBool));
}

Result<Values> exclusive_or(Mapper& m, const Call& call) {
  TRY(const Value a, bools(m, call.in(0)));
  TRY(const Value b, bools(m, call.in(1)));
  TRY(const Value any, m.elementwise("logical_or", {a, b}, {}, Kind::kBool));
  TRY(const Value both, m.elementwise("logical_and", {a, b}, {}, Kind::kBool));
  TRY(const Value unlike, m.elementwise("logical_not", {both}, {}, Kind::kBool));
  return one(m.elementwise("logical_and", {any, unlike}, {}, Kind::kBool));
}

// The IR chooses between two numbers only where one is a table.
Result<Value> chosen_number(Mapper& m, const std::string& condition, const Layout& out, double a, double b) {
  const Shape ones(ir_shape(out).size(), 1);
  TRY(const std::string name, m.frozen(m.graph.base + ".constant", filled(Kind::kFloat, ones, a)));
  const std::string value = m.graph.node("parameter", {}, ones, {}, {{"weight", name}});
  return m.make("where", {condition, value, m.scalar(b)}, out);
}

Result<Values> where(Mapper& m, const Call& call) {
  if (call.in(0).is_const() && call.in(0).at[0]->size() == 1)
    return Values{call.in(0).at[0]->real(0) != 0 ? call.in(1) : call.in(2)};
  TRY(const Value condition, bools(m, call.in(0)));
  TRY(const Value a, floats(call.in(1)));
  TRY(const Value b, floats(call.in(2)));
  const auto number = [&](const Value& v) { return v.is_const() && v.at[0]->size() == 1 && !m.tracked(v); };
  if (!number(a) || !number(b)) return one(m.elementwise("where", {condition, a, b}));
  TRY(const Layout out, m.broadcast_layout({condition, a, b}));
  TRY(const std::string chosen, m.operand(condition, out));
  return one(chosen_number(m, chosen, out, a.at[0]->real(0), b.at[0]->real(0)));
}

Result<Values> clip(Mapper& m, const Call& call) {
  TRY(const Value x, compared(m, call.in(0)));
  const bool whole = call.in(0).kind == Kind::kInt;
  const auto made = [&](const Value& v) { return Values{whole ? as_integers(m, v) : v}; };
  double bounds[2] = {-kInfinity, kInfinity};
  if (call.opset < 11) {
    bounds[0] = call.real("min", -kInfinity);
    bounds[1] = call.real("max", kInfinity);
    if (bounds[0] <= -3.4028234e38) bounds[0] = -kInfinity;
    if (bounds[1] >= 3.4028234e38) bounds[1] = kInfinity;
  } else {
    for (const size_t i : {size_t{1}, size_t{2}}) {
      if (!call.has(i)) continue;
      if (call.in(i).is_graph()) {  // bounds that are computed
        Value v = x;
        if (call.has(1)) {
          TRY(const Value bound, compared(m, call.in(1)));
          TRY(v, m.elementwise("maximum", {v, bound}));
        }
        if (call.has(2)) {
          TRY(const Value bound, compared(m, call.in(2)));
          TRY(v, m.elementwise("minimum", {v, bound}));
        }
        return made(v);
      }
      TRY(bounds[i - 1], m.fixed_real(call, i, i == 1 ? "minimum" : "maximum"));
    }
  }
  if (bounds[0] > bounds[1]) bounds[0] = bounds[1];
  TRY(const Value v,
      m.elementwise("clip", {x}, {{"least", real_text(bounds[0])}, {"most", real_text(bounds[1])}}));
  return made(v);
}

Result<Values> elu(Mapper& m, const Call& call) {
  return one(m.elementwise("elu", {call.in(0)}, {{"alpha", real_text(call.real("alpha", 1))}}));
}

Result<Values> celu(Mapper& m, const Call& call) {
  const double alpha = call.real("alpha", 1);
  TRY(const Value scaled, m.scalar_op("div", call.in(0), alpha));
  TRY(const Value bent, m.elementwise("elu", {scaled}, {{"alpha", "1"}}));
  return one(m.scalar_op("mul", bent, alpha));
}

Result<Values> selu(Mapper& m, const Call& call) {
  const double alpha = call.real("alpha", 1.6732632423543772), gamma = call.real("gamma", 1.0507009873554805);
  if (std::abs(alpha - 1.6732632423543772) < 1e-6 && std::abs(gamma - 1.0507009873554805) < 1e-6)
    return one(m.elementwise("selu", {call.in(0)}));
  TRY(const Value bent, m.elementwise("elu", {call.in(0)}, {{"alpha", real_text(alpha)}}));
  return one(m.scalar_op("mul", bent, gamma));
}

Result<Values> leaky_relu(Mapper& m, const Call& call) {
  return one(m.elementwise("leaky_relu", {call.in(0)}, {{"slope", real_text(call.real("alpha", 0.01))}}));
}

Result<Values> hard_sigmoid(Mapper& m, const Call& call) {
  return one(m.elementwise(
      "hard_sigmoid", {call.in(0)},
      {{"alpha", real_text(call.real("alpha", 0.2))}, {"beta", real_text(call.real("beta", 0.5))}}));
}

Result<Values> gelu(Mapper& m, const Call& call) {
  const std::string form = call.text("approximate", "none");
  return one(m.elementwise("gelu", {call.in(0)}, {{"form", form == "tanh" ? "tanh" : "erf"}}));
}

Result<Values> swish(Mapper& m, const Call& call) {
  const double alpha = call.real("alpha", 1);
  if (alpha == 1) return one(m.elementwise("silu", {call.in(0)}));
  TRY(const Value scaled, m.scalar_op("mul", call.in(0), alpha));
  TRY(const Value gate, m.elementwise("sigmoid", {scaled}));
  return one(m.elementwise("mul", {call.in(0), gate}));
}

Result<Values> thresholded_relu(Mapper& m, const Call& call) {
  const Value bound = m.constant(of_real(call.real("alpha", 1)));
  TRY(const Value above, m.elementwise("less", {bound, call.in(0)}, {}, Kind::kBool));
  return one(m.elementwise("where", {above, call.in(0), m.constant(of_real(0))}));
}

Result<Values> shrink(Mapper& m, const Call& call) {
  const double bias = call.real("bias", 0), lambd = call.real("lambd", 0.5);
  const Value &x = call.in(0), zero = m.constant(of_real(0));
  TRY(const Value high, m.elementwise("less", {m.constant(of_real(lambd)), x}, {}, Kind::kBool));
  TRY(const Value low, m.elementwise("less", {x, m.constant(of_real(-lambd))}, {}, Kind::kBool));
  TRY(const Value down, m.scalar_op("sub", x, bias));
  TRY(const Value up, m.scalar_op("add", x, bias));
  TRY(const Value inner, m.elementwise("where", {low, up, zero}));
  return one(m.elementwise("where", {high, down, inner}));
}

Result<Values> prelu(Mapper& m, const Call& call) {
  const Value &x = call.in(0), zero = m.constant(of_real(0));
  Value slope = call.in(1);
  m.train_everywhere(slope);
  // Before opset 7 a slope for each channel.
  if (call.opset < 7 && slope.is_const() && slope.at[0]->shape.size() == 1 && slope.at[0]->size() > 1) {
    Shape shape(x.layout.rank() - 1, 1);
    shape[0] = static_cast<int64_t>(slope.at[0]->size());
    slope.at[0] = slope.at[1] = shaped(*slope.at[0], shape);
  }
  TRY(const Value up, m.elementwise("relu", {x}));
  TRY(const Value down, m.elementwise("minimum", {x, zero}));
  TRY(const Value bent, m.elementwise("mul", {down, slope}));
  return one(m.elementwise("add", {up, bent}));
}

// asin x = atan(x / sqrt(1 - x^2)); acos x = 2 atan(sqrt((1 - x) / (1 + x))), which is exact near 1 too.
Result<Values> arc_sine(Mapper& m, const Call& call) {
  const Value& x = call.in(0);
  TRY(const Value square, m.elementwise("square", {x}));
  TRY(const Value rest, m.elementwise("sub", {m.constant(of_real(1)), square}));
  TRY(const Value root, m.elementwise("sqrt", {rest}));
  TRY(const Value ratio, m.elementwise("div", {x, root}));
  return one(m.elementwise("atan", {ratio}));
}

Result<Values> arc_cosine(Mapper& m, const Call& call) {
  const Value& x = call.in(0);
  TRY(const Value below, m.elementwise("sub", {m.constant(of_real(1)), x}));
  TRY(const Value above, m.scalar_op("add", x, 1));
  TRY(const Value ratio, m.elementwise("div", {below, above}));
  TRY(const Value root, m.elementwise("sqrt", {ratio}));
  TRY(const Value half, m.elementwise("atan", {root}));
  return one(m.scalar_op("mul", half, 2));
}

Result<Values> tangent(Mapper& m, const Call& call) {
  TRY(const Value s, m.elementwise("sin", {call.in(0)}));
  TRY(const Value c, m.elementwise("cos", {call.in(0)}));
  return one(m.elementwise("div", {s, c}));
}

// (e^x + sign e^-x) / 2
Result<Value> hyperbolic(Mapper& m, const Value& x, const char* join) {
  TRY(const Value up, m.elementwise("exp", {x}));
  TRY(const Value minus, m.elementwise("neg", {x}));
  TRY(const Value down, m.elementwise("exp", {minus}));
  TRY(const Value both, m.elementwise(join, {up, down}));
  return m.scalar_op("mul", both, 0.5);
}

// log(x + sqrt(x^2 + shift))
Result<Value> area(Mapper& m, const Value& x, double shift) {
  TRY(const Value square, m.elementwise("square", {x}));
  TRY(const Value moved, m.scalar_op("add", square, shift));
  TRY(const Value root, m.elementwise("sqrt", {moved}));
  TRY(const Value sum, m.elementwise("add", {x, root}));
  return m.elementwise("log", {sum});
}

Result<Values> area_tangent(Mapper& m, const Call& call) {
  TRY(const Value minus, m.elementwise("neg", {call.in(0)}));
  TRY(const Value up, m.elementwise("log1p", {call.in(0)}));
  TRY(const Value down, m.elementwise("log1p", {minus}));
  TRY(const Value both, m.elementwise("sub", {up, down}));
  return one(m.scalar_op("mul", both, 0.5));
}

Result<Value> unlike_zero(Mapper& m, const Value& x) {
  TRY(const Value zero, m.elementwise("equal", {x, m.constant(of_real(0))}, {}, Kind::kBool));
  return m.elementwise("logical_not", {zero}, {}, Kind::kBool);
}

Result<Values> is_nan(Mapper& m, const Call& call) {
  TRY(const Value itself, m.elementwise("equal", {call.in(0), call.in(0)}, {}, Kind::kBool));
  return one(m.elementwise("logical_not", {itself}, {}, Kind::kBool));
}

Result<Values> is_inf(Mapper& m, const Call& call) {
  const bool above = call.integer("detect_positive", 1) != 0, below = call.integer("detect_negative", 1) != 0;
  Value x = call.in(0);
  if (!above && !below) return refused("it looks for nothing");
  if (above && below) {
    TRY(x, m.elementwise("abs", {x}));
  }
  const Value number = m.constant(of_real(above ? kInfinity : -kInfinity));
  return one(m.elementwise("equal", {x, number}, {}, Kind::kBool));
}

Result<Values> cast(Mapper& m, const Call& call) {
  const Value& x = call.in(0);
  Kind to = Kind::kFloat;
  if (call.op() == "CastLike") {
    to = call.in(1).is_const() ? call.in(1).at[0]->kind : call.in(1).kind;
  } else {
    const auto type = static_cast<int32_t>(call.integer("to", 1));
    TRY(to, kind_of(type));
    if (type == 10 || type == 16)
      m.notes.insert("casts to 16 bits are left out: the workload's precision decides");
  }
  if (x.is_const()) {
    Value made = x;
    for (ArrayPtr& at : made.at) {
      TRY(at, converted(at, to));
    }
    return Values{made};
  }
  if (x.kind == to) return Values{x};
  if (x.kind == Kind::kInt) {
    TRY(const Value numbers, numbers_of(m, x));
    return to == Kind::kFloat ? Result<Values>(Values{numbers}) : one(unlike_zero(m, numbers));
  }
  if (to == Kind::kBool) return one(unlike_zero(m, x));
  Value numbers = x;
  if (x.kind == Kind::kBool) {
    TRY(numbers, as_numbers(m, x));
  }
  if (to == Kind::kFloat) return Values{numbers};
  if (x.kind == Kind::kBool) return Values{as_integers(m, numbers)};
  return Values{m.make("cast", {numbers.name}, x.layout, {{"to", "i32"}}, {}, to)};
}

Result<Values> identity(Mapper&, const Call& call) { return Values{call.in(0)}; }

Result<Values> dropout(Mapper& m, const Call& call) {
  double rate = call.opset < 12 ? call.real("ratio", 0.5) : 0.5;
  if (call.opset >= 12) {
    if (call.has(1)) {
      TRY(rate, m.fixed_real(call, 1, "ratio"));
    }
  }
  if (call.wants(1)) {  // all true, as nothing is dropped outside of training
    if (call.has(2)) {
      TRY(const double trains, m.fixed_real(call, 2, "training_mode"));
      if (trains != 0 && rate != 0) return refused("its mask is used, in training mode");
    }
    m.notes.insert("a dropout whose mask is used is left out: the file drops nothing there");
    Value mask;
    for (int which = 0; which < 2; ++which) {
      TRY(const int64_t size, count(m.shape_at(call.in(0), which), int64_t{1} << 24));
      static_cast<void>(size);
      mask.at[which] = filled(Kind::kBool, m.shape_at(call.in(0), which), 1);
    }
    return Values{call.in(0), mask};
  }
  if (rate == 0 || !call.in(0).is_graph()) return Values{call.in(0)};
  return Values{m.make("dropout", {call.in(0).name}, call.in(0).layout, {{"rate", real_text(rate)}})};
}

#define BAKEOFF_UNARY(op) +[](Mapper& m, const Call& call) { return unary(m, call, op); }
#define BAKEOFF_BINARY(op, kind) +[](Mapper& m, const Call& call) { return binary(m, call, op, kind); }
#define BAKEOFF_VARIADIC(op) +[](Mapper& m, const Call& call) { return one(fold_left(m, call, op)); }

Rows unary_rows() {
  return {
      {"Neg", BAKEOFF_UNARY("neg")},
      {"Abs", BAKEOFF_UNARY("abs")},
      {"Sign", BAKEOFF_UNARY("sign")},
      {"Exp", BAKEOFF_UNARY("exp")},
      {"Log", BAKEOFF_UNARY("log")},
      {"Sqrt", BAKEOFF_UNARY("sqrt")},
      {"Reciprocal", BAKEOFF_UNARY("reciprocal")},
      {"Sin", BAKEOFF_UNARY("sin")},
      {"Cos", BAKEOFF_UNARY("cos")},
      {"Tan", tangent},
      {"Asin", arc_sine},
      {"Acos", arc_cosine},
      {"Atan", BAKEOFF_UNARY("atan")},
      {"IsNaN", is_nan},
      {"IsInf", is_inf},
      {"Erf", BAKEOFF_UNARY("erf")},
      {"Tanh", BAKEOFF_UNARY("tanh")},
      {"Sigmoid", BAKEOFF_UNARY("sigmoid")},
      {"Relu", BAKEOFF_UNARY("relu")},
      {"Floor", BAKEOFF_UNARY("floor")},
      {"Ceil", BAKEOFF_UNARY("ceil")},
      {"Round", BAKEOFF_UNARY("round")},
      {"Softplus", BAKEOFF_UNARY("softplus")},
      {"Softsign", BAKEOFF_UNARY("softsign")},
      {"Mish", BAKEOFF_UNARY("mish")},
      {"HardSwish", BAKEOFF_UNARY("hard_swish")},
      {"HardSigmoid", hard_sigmoid},
      {"Elu", elu},
      {"Celu", celu},
      {"Selu", selu},
      {"LeakyRelu", leaky_relu},
      {"ThresholdedRelu", thresholded_relu},
      {"Shrink", shrink},
      {"PRelu", prelu},
      {"Gelu", gelu},
      {"Swish", swish},
      {"Sinh", +[](Mapper& m, const Call& c) { return one(hyperbolic(m, c.in(0), "sub")); }},
      {"Cosh", +[](Mapper& m, const Call& c) { return one(hyperbolic(m, c.in(0), "add")); }},
      {"Asinh", +[](Mapper& m, const Call& c) { return one(area(m, c.in(0), 1)); }},
      {"Acosh", +[](Mapper& m, const Call& c) { return one(area(m, c.in(0), -1)); }},
      {"Atanh", area_tangent},
      {"Clip", clip},
  };
}

Rows joining_rows() {
  return {
      {"Add", add},
      {"Sum", BAKEOFF_VARIADIC("add")},
      {"Mean", mean},
      {"Max", BAKEOFF_VARIADIC("maximum")},
      {"Min", BAKEOFF_VARIADIC("minimum")},
      {"Sub", BAKEOFF_BINARY("sub", Kind::kFloat)},
      {"Mul", BAKEOFF_BINARY("mul", Kind::kFloat)},
      {"Div", BAKEOFF_BINARY("div", Kind::kFloat)},
      {"Pow", power},
      {"Less", BAKEOFF_BINARY("less", Kind::kBool)},
      {"LessOrEqual", BAKEOFF_BINARY("less_equal", Kind::kBool)},
      {"Greater", +[](Mapper& m, const Call& c) { return greater(m, c, "less"); }},
      {"GreaterOrEqual", +[](Mapper& m, const Call& c) { return greater(m, c, "less_equal"); }},
      {"Equal", BAKEOFF_BINARY("equal", Kind::kBool)},
      {"Mod", remainder},
      {"And", +[](Mapper& m, const Call& c) { return logic(m, c, "logical_and"); }},
      {"Or", +[](Mapper& m, const Call& c) { return logic(m, c, "logical_or"); }},
      {"Xor", exclusive_or},
      {"Not",
       +[](Mapper& m, const Call& c) -> Result<Values> {
         TRY(const Value a, bools(m, c.in(0)));
         return one(m.elementwise("logical_not", {a}, {}, Kind::kBool));
       }},
      {"Where", where},
      {"Cast", cast},
      {"CastLike", cast},
      {"Identity", identity},
      {"Dropout", dropout},
  };
}

}  // namespace

Result<Value> as_numbers(Mapper& m, const Value& condition, double yes, double no) {
  return chosen_number(m, condition.name, condition.layout, yes, no);
}

Result<Value> as_floats(Mapper& m, const Value& ids) { return numbers_of(m, ids); }

Value as_integers(Mapper& m, const Value& whole) {
  const Value made = m.make("cast", {whole.name}, whole.layout, {{"to", "i32"}}, {}, Kind::kInt);
  m.counted[made.name] = whole;
  return made;
}

Result<Value> truths_of(Mapper& m, const Value& ids) {
  TRY(const Value numbers, numbers_of(m, ids, true));
  return unlike_zero(m, numbers);
}

Rows elementwise_rows() {
  Rows all = unary_rows();
  all.merge(joining_rows());
  return all;
}

}  // namespace bakeoff::onnx
