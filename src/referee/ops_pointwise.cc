// Ops of one element at a time: the function and its derivative are lambdas, and two loops serve most of
// them. Pieces have a fixed size whatever the number of threads, and no element depends on another, so
// results are the same bit by bit for any number of threads. Gradients are added and never assigned, since
// several nodes may read one value. An op whose derivative has a jump (relu at 0) follows the options: proofs
// ask for both sides of an edge, as honest frameworks may stand on either. Masks of dropout follow from the
// seed, the step, the node and the place, so that no order of evaluation changes them.

#include <cmath>
#include <numbers>

#include "referee/dropout.h"
#include "referee/ops.h"
#include "referee/parallel.h"
#include "referee/walk.h"
#include "tensor/rng.h"

namespace bakeoff::referee {
namespace {

constexpr int64_t kGrain = 1 << 16;  // elements of one piece

// y[i] = f(x[i]).
template <typename F>
Tensor mapped(const NodeContext& c, const F& f) {
  const double* const x = c.input(0).data.data();
  Tensor y = c.make();
  for_each_range(static_cast<int64_t>(y.data.size()), kGrain, c.options.threads,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) y.data[static_cast<size_t>(i)] = f(x[i]);
                 });
  return y;
}

// dx[i] += f(x[i], y[i], g[i]).
template <typename F>
void mapped_backward(const NodeContext& c, const Tensor& output, const Tensor& grad, const Gradients& to,
                     const F& f) {
  if (to.inputs[0] == nullptr) return;
  const double* const x = c.input(0).data.data();
  const double* const y = output.data.data();
  const double* const g = grad.data.data();
  double* const dx = to.inputs[0]->data.data();
  for_each_range(static_cast<int64_t>(grad.data.size()), kGrain, c.options.threads,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) dx[i] += f(x[i], y[i], g[i]);
                 });
}

AnyTensor relu(const NodeContext& c) {
  return mapped(c, [](double x) { return x <= 0 ? 0.0 : x; });  // NaN stays NaN
}
void relu_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  const double edge = c.edge();
  const bool at_zero = c.options.edges == Edges::kOpenAtZero;
  const bool open = at_zero || c.options.edges == Edges::kOpen;
  mapped_backward(c, y, grad, to, [edge, open, at_zero](double x, double, double g) {
    // Zero itself needs no rounding: it is an edge only where the options say so.
    if ((x != 0 || at_zero) && std::abs(x) < edge) return open ? g : 0.0;
    return x <= 0 ? 0.0 : g;
  });
}

constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
constexpr double kCubic = 0.044715;

double gelu_erf(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }
double gelu_erf_slope(double x) {
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
}
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(kTanhScale * (x + kCubic * x * x * x))); }
double gelu_tanh_slope(double x) {
  const double t = std::tanh(kTanhScale * (x + kCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kTanhScale * (1 + 3 * kCubic * x * x);
}

AnyTensor gelu(const NodeContext& c) {
  return mapped(c, c.node.word("form") == "erf" ? gelu_erf : gelu_tanh);
}
void gelu_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  const auto slope = c.node.word("form") == "erf" ? gelu_erf_slope : gelu_tanh_slope;
  mapped_backward(c, y, grad, to, [slope](double x, double, double g) { return g * slope(x); });
}

// The exponential's argument is never positive.
double logistic(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}
AnyTensor sigmoid(const NodeContext& c) { return mapped(c, logistic); }
void sigmoid_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  mapped_backward(c, y, grad, to, [](double, double s, double g) { return g * s * (1 - s); });
}

AnyTensor tanh(const NodeContext& c) {
  return mapped(c, [](double x) { return std::tanh(x); });
}
void tanh_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  mapped_backward(c, y, grad, to, [](double, double t, double g) { return g * (1 - t * t); });
}

// 0 or 1 / (1 - rate) for every element; 1 where dropout is off.
template <typename Use>
void each_dropout_factor(const NodeContext& c, const Use& use) {
  const double rate = c.node.real("rate");
  const auto count = static_cast<uint64_t>(tensor::elements(c.shape));
  for (uint64_t i = 0; i < count; ++i) use(i, dropout_factor(c, i, rate));
}

AnyTensor dropout(const NodeContext& c) {
  Tensor y = c.input(0);
  each_dropout_factor(c, [&](uint64_t i, double factor) { y.data[i] *= factor; });
  return y;
}
void dropout_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  each_dropout_factor(c, [&](uint64_t i, double factor) { to.inputs[0]->data[i] += grad.data[i] * factor; });
}

// visit(i, a, b): positions in the output and both operands.
template <typename Visit>
void each_pair(const NodeContext& c, const Visit& visit) {
  const Shape &a = c.input(0).shape, &b = c.input(1).shape;
  if (a == b) {
    const int64_t count = tensor::elements(c.shape);
    for (int64_t i = 0; i < count; ++i) visit(i, i, i);
    return;
  }
  walk(c.shape, broadcast_strides(a, c.shape), broadcast_strides(b, c.shape), visit);
}

AnyTensor add(const NodeContext& c) {
  Tensor y = c.make();
  const double *a = c.input(0).data.data(), *b = c.input(1).data.data();
  double* const out = y.data.data();
  each_pair(c, [&](int64_t i, int64_t ia, int64_t ib) { out[i] = a[ia] + b[ib]; });
  return y;
}
void add_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  Tensor *const da = to.inputs[0], *const db = to.inputs[1];
  const double* const g = grad.data.data();
  each_pair(c, [&](int64_t i, int64_t ia, int64_t ib) {
    if (da != nullptr) da->data[static_cast<size_t>(ia)] += g[i];
    if (db != nullptr) db->data[static_cast<size_t>(ib)] += g[i];
  });
}

AnyTensor mul(const NodeContext& c) {
  Tensor y = c.make();
  const double *a = c.input(0).data.data(), *b = c.input(1).data.data();
  double* const out = y.data.data();
  each_pair(c, [&](int64_t i, int64_t ia, int64_t ib) { out[i] = a[ia] * b[ib]; });
  return y;
}
void mul_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  Tensor *const da = to.inputs[0], *const db = to.inputs[1];
  const double *a = c.input(0).data.data(), *b = c.input(1).data.data(), *g = grad.data.data();
  each_pair(c, [&](int64_t i, int64_t ia, int64_t ib) {
    if (da != nullptr) da->data[static_cast<size_t>(ia)] += g[i] * b[ib];
    if (db != nullptr) db->data[static_cast<size_t>(ib)] += g[i] * a[ia];
  });
}

}  // namespace

bool survives(uint64_t seed, uint64_t step, uint64_t node, uint64_t index, double rate) {
  using tensor::mix;
  const uint64_t bits = mix(index ^ mix(node ^ mix(step ^ mix(seed))));
  return static_cast<double>(bits >> 11) * 0x1p-53 >= rate;
}

double dropout_factor(const NodeContext& c, uint64_t index, double rate) {
  if (!c.options.train || !c.options.dropout) return 1;
  const DropoutMasks& masks = *c.options.dropout;
  return survives(masks.seed, masks.step, static_cast<uint64_t>(c.index), index, rate) ? 1 / (1 - rate) : 0;
}

std::vector<OpFunctions> pointwise_ops() {
  return {{ir::Op::kDropout, dropout, dropout_backward},
          {ir::Op::kRelu, relu, relu_backward},
          {ir::Op::kGelu, gelu, gelu_backward},
          {ir::Op::kSigmoid, sigmoid, sigmoid_backward},
          {ir::Op::kTanh, tanh, tanh_backward},
          {ir::Op::kAdd, add, add_backward},
          {ir::Op::kMul, mul, mul_backward}};
}

}  // namespace bakeoff::referee
