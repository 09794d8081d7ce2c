// Ops of ir/elementwise.h with broadcasting, by strides in place of copies: an axis that is broadcast has
// stride 0. Where nothing is broadcast the elements are independent, and are split among threads; an input
// that is broadcast gets a sum as its gradient, and that walk has one thread, so that no result depends on
// their number. Booleans become 0 and 1 once for each node: the formulas of the table then know numbers
// alone. Near a kink the input is moved to the side that the options ask for, as in ops_pointwise.cc.

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/elementwise.h"
#include "referee/ops.h"
#include "referee/parallel.h"
#include "referee/walk.h"

namespace bakeoff::referee {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements of one piece
constexpr size_t kMost = 2;          // inputs

// An input's numbers, booleans as 0 and 1.
std::vector<double> widened(const IntTensor& x) { return {x.data.begin(), x.data.end()}; }

// The inputs of a node with their strides over its output.
class Operands {
 public:
  explicit Operands(const NodeContext& c) : shape_(c.shape), count_(c.inputs.size()) {
    for (size_t i = 0; i < count_; ++i) {
      const AnyTensor& x = *c.inputs[i];
      if (const auto* flags = std::get_if<IntTensor>(&x)) {
        flags_[i] = widened(*flags);
        data_[i] = flags_[i].data();
      } else {
        data_[i] = std::get<Tensor>(x).data.data();
      }
      plain_ = plain_ && tensor::shape_of(x) == shape_;
      strides_[i] = broadcast_strides(tensor::shape_of(x), shape_);
    }
    strides_[1].resize(shape_.size(), 0);
  }

  // visit(i, x, places): the inputs of element i of the output, and where they stand.
  template <typename Visit>
  void each(int threads, const Visit& visit) const {
    if (plain_) {
      for_each_range(tensor::elements(shape_), kGrain, threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) visit_at(i, i, i, visit);
      });
      return;
    }
    walk(shape_, strides_[0], strides_[1],
         [&](int64_t i, int64_t a, int64_t b) { visit_at(i, a, b, visit); });
  }

 private:
  template <typename Visit>
  void visit_at(int64_t i, int64_t a, int64_t b, const Visit& visit) const {
    const std::array<int64_t, kMost> places = {a, b};
    std::array<double, kMost> x = {data_[0][a], count_ > 1 ? data_[1][b] : 0};
    visit(i, x.data(), places);
  }

  const Shape& shape_;
  size_t count_;
  bool plain_ = true;  // nothing is broadcast
  std::array<const double*, kMost> data_ = {};
  std::array<std::vector<double>, kMost> flags_;
  std::array<Strides, kMost> strides_;
};

AnyTensor elementwise(const NodeContext& c) {
  const ir::Elementwise& row = *ir::find_elementwise(c.node.op);
  const std::vector<double> a = ir::reals(c.node);
  const Operands operands(c);
  const auto compute = [&](auto& data) {
    operands.each(c.options.threads, [&](int64_t i, const double* x, const auto&) {
      data[static_cast<size_t>(i)] = static_cast<std::decay_t<decltype(data[0])>>(row.value(x, a.data()));
    });
  };
  if (row.kind == ir::ElementKind::kReal) {
    Tensor y = c.make();
    compute(y.data);
    return y;
  }
  IntTensor y{.shape = c.shape, .data = {}};
  y.data.resize(static_cast<size_t>(tensor::elements(c.shape)));
  compute(y.data);
  return y;
}

// The input, moved to the side of a kink near it that the options ask for.
double beside_kinks(double x, const std::vector<double>& kinks, double edge, Edges edges) {
  for (const double kink : kinks) {
    if (x == kink && edges != Edges::kOpenAtZero) continue;
    if (std::abs(x - kink) < edge) return edges == Edges::kClosed ? kink - edge : kink + edge;
  }
  return x;
}

void elementwise_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  const ir::Elementwise& row = *ir::find_elementwise(c.node.op);
  if (row.slope == nullptr) return;
  const std::vector<double> a = ir::reals(c.node);
  const auto kinks = row.kinks != nullptr ? row.kinks(a.data()) : std::vector<double>{};
  const double edge = kinks.empty() ? 0 : c.edge();
  Operands(c).each(c.options.threads, [&](int64_t i, const double* x, const auto& places) {
    const auto at = static_cast<size_t>(i);
    const double moved = edge > 0 ? beside_kinks(x[0], kinks, edge, c.options.edges) : x[0];
    const double value = moved == x[0] ? y.data[at] : row.value(&moved, a.data());
    for (size_t n = 0; n < to.inputs.size(); ++n) {
      if (to.inputs[n] == nullptr) continue;
      const double slope = row.slope(n, moved == x[0] ? x : &moved, value, a.data());
      to.inputs[n]->data[static_cast<size_t>(places[n])] += grad.data[at] * slope;
    }
  });
}

AnyTensor constant(const NodeContext& c) {
  Tensor y = c.make();
  y.data[0] = c.node.real("value");
  return y;
}
void constant_backward(const NodeContext&, const Tensor&, const Tensor&, const Gradients&) {}

AnyTensor parameter(const NodeContext& c) { return *c.param("weight"); }
void parameter_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  Tensor* const place = to.param(c.node, "weight");
  if (place == nullptr) return;
  for (size_t i = 0; i < grad.data.size(); ++i) place->data[i] += grad.data[i];
}

// Calls visit(i, holds, a, b): positions in the output and the two values.
template <typename Visit>
void each_choice(const NodeContext& c, const Visit& visit) {
  const IntTensor& condition = c.integers(0);
  std::vector<char> holds(static_cast<size_t>(tensor::elements(c.shape)));
  const Strides none(c.shape.size(), 0);
  walk(c.shape, broadcast_strides(condition.shape, c.shape), none, [&](int64_t i, int64_t from, int64_t) {
    holds[static_cast<size_t>(i)] = condition.data[static_cast<size_t>(from)] != 0 ? 1 : 0;
  });
  walk(c.shape, broadcast_strides(c.input(1).shape, c.shape), broadcast_strides(c.input(2).shape, c.shape),
       [&](int64_t i, int64_t a, int64_t b) {
         visit(static_cast<size_t>(i), holds[static_cast<size_t>(i)] != 0, static_cast<size_t>(a),
               static_cast<size_t>(b));
       });
}

AnyTensor where(const NodeContext& c) {
  Tensor y = c.make();
  const auto &a = c.input(1).data, &b = c.input(2).data;
  each_choice(c, [&](size_t i, bool holds, size_t ia, size_t ib) { y.data[i] = holds ? a[ia] : b[ib]; });
  return y;
}
void where_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  Tensor *const da = to.inputs[1], *const db = to.inputs[2];
  each_choice(c, [&](size_t i, bool holds, size_t ia, size_t ib) {
    if (holds && da != nullptr) da->data[ia] += grad.data[i];
    if (!holds && db != nullptr) db->data[ib] += grad.data[i];
  });
}

}  // namespace

std::vector<OpFunctions> elementwise_ops() {
  std::vector<OpFunctions> rows = {{ir::Op::kConstant, constant, constant_backward},
                                   {ir::Op::kParameter, parameter, parameter_backward},
                                   {ir::Op::kWhere, where, where_backward}};
  for (const ir::Elementwise& row : ir::elementwise_ops())
    rows.push_back({row.op, elementwise, elementwise_backward});
  return rows;
}

}  // namespace bakeoff::referee
