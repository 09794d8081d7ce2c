// Ops along axes: reductions, slices, repetition, the matrix product.
//
// Most of them are one walk over the input with the strides of the output, in which an axis that goes has the
// stride 0 (kept_strides); backward is the same walk with the two sides exchanged. So sum, mean, slice, flip
// and expand have no index arithmetic of their own.
//
// Ops that choose an element (max, argmax) are not continuous: two elements that are equal but for rounding
// may be chosen differently by a framework that is right. c.edge() is the distance below which elements count
// as equal, and options.edges says which of them to choose; the proof runs the referee both ways and takes
// the difference as what rounding explains. A place that does not exist gives NaN here: frameworks differ
// about it, so no proof may pass on it.

#include <algorithm>
#include <cmath>
#include <limits>

#include "referee/gemm.h"
#include "referee/ops.h"
#include "referee/parallel.h"
#include "referee/walk.h"

namespace bakeoff::referee {
namespace {

using Ints = std::vector<int64_t>;

// Strides of a reduction's output over the axes of its input: 0 along the axes that go.
Strides kept_strides(const NodeContext& c) {
  Shape kept = c.input(0).shape;
  for (const int64_t axis : c.node.reduced_axes()) kept[static_cast<size_t>(axis)] = 1;
  return broadcast_strides(kept, c.input(0).shape);
}

// visit(i, at): element i of the input goes into element `at` of the output.
template <typename Visit>
void each_reduced(const NodeContext& c, const Visit& visit) {
  const Strides strides = kept_strides(c);
  walk(c.input(0).shape, strides, strides,
       [&](int64_t i, int64_t at, int64_t) { visit(static_cast<size_t>(i), static_cast<size_t>(at)); });
}

// How many elements go into each of the output.
double share(const NodeContext& c, const Tensor& y) {
  return static_cast<double>(c.input(0).data.size()) / static_cast<double>(y.data.size());
}

AnyTensor sum(const NodeContext& c) {
  Tensor y = c.make();
  each_reduced(c, [&](size_t i, size_t at) { y.data[at] += c.input(0).data[i]; });
  return y;
}
void sum_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  each_reduced(c, [&](size_t i, size_t at) { to.inputs[0]->data[i] += grad.data[at]; });
}

AnyTensor mean(const NodeContext& c) {
  Tensor y = std::get<Tensor>(sum(c));
  const double count = share(c, y);
  for (double& v : y.data) v /= count;
  return y;
}
void mean_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  const double count = share(c, y);
  each_reduced(c, [&](size_t i, size_t at) { to.inputs[0]->data[i] += grad.data[at] / count; });
}

// The largest (sign 1) or smallest (-1) elements.
AnyTensor extreme(const NodeContext& c, double sign) {
  Tensor y = tensor::full(c.shape, -sign * std::numeric_limits<double>::infinity());
  each_reduced(c, [&](size_t i, size_t at) {
    const double x = c.input(0).data[i];
    if (sign * x > sign * y.data[at] || x != x) y.data[at] = x;  // NaN wins
  });
  return y;
}
AnyTensor max(const NodeContext& c) { return extreme(c, 1); }
AnyTensor min(const NodeContext& c) { return extreme(c, -1); }

// Equal elements share the gradient. Where edges are open the first of the elements that rounding cannot order takes
// it, where they are closed the last.
void extreme_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  const auto& x = c.input(0).data;
  const double edge = c.edge();
  struct Best {
    int equal = 0, near = 0;  // how many elements
    size_t chosen = 0;        // of those near it
  };
  std::vector<Best> all(y.data.size());
  each_reduced(c, [&](size_t i, size_t at) {
    Best& best = all[at];
    if (x[i] == y.data[at]) ++best.equal;
    if (std::abs(x[i] - y.data[at]) > edge) return;
    if (best.near++ == 0 || c.options.edges == Edges::kClosed) best.chosen = i;
  });
  each_reduced(c, [&](size_t i, size_t at) {
    const Best& best = all[at];
    double part = x[i] == y.data[at] ? 1.0 / best.equal : 0;
    if (best.near > best.equal) part = best.chosen == i ? 1 : 0;
    to.inputs[0]->data[i] += part * grad.data[at];
  });
}

AnyTensor logsumexp(const NodeContext& c) {
  const Tensor top = std::get<Tensor>(max(c));
  Tensor y = c.make();
  each_reduced(c, [&](size_t i, size_t at) { y.data[at] += std::exp(c.input(0).data[i] - top.data[at]); });
  for (size_t at = 0; at < y.data.size(); ++at) y.data[at] = top.data[at] + std::log(y.data[at]);
  return y;
}
void logsumexp_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  each_reduced(c, [&](size_t i, size_t at) {
    to.inputs[0]->data[i] += grad.data[at] * std::exp(c.input(0).data[i] - y.data[at]);
  });
}

AnyTensor prod(const NodeContext& c) {
  Tensor y = tensor::full(c.shape, 1);
  each_reduced(c, [&](size_t i, size_t at) { y.data[at] *= c.input(0).data[i]; });
  return y;
}
// The product of all others, from those before and those behind: elements of 0 are not divided by.
void prod_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  const auto& x = c.input(0).data;
  size_t result = 0;
  each_line(c.input(0).shape, c.node.integer("axis"), [&](int64_t first, int64_t step, int64_t count) {
    const double g = grad.data[result++];
    std::vector<double> before(static_cast<size_t>(count), 1);
    const auto at = [&](int64_t i) { return static_cast<size_t>(first + i * step); };
    for (int64_t i = 1; i < count; ++i)
      before[static_cast<size_t>(i)] = before[static_cast<size_t>(i - 1)] * x[at(i - 1)];
    double behind = 1;
    for (int64_t i = count; i-- > 0; behind *= x[at(i)])
      to.inputs[0]->data[at(i)] += g * before[static_cast<size_t>(i)] * behind;
  });
}

// Where edges are open the first of the elements that rounding cannot order, where they are closed the last.
AnyTensor argmax(const NodeContext& c) {
  const Tensor& x = c.input(0);
  const double edge = c.edge();
  IntTensor y{.shape = c.shape, .data = {}};
  each_line(x.shape, c.node.integer("axis"), [&](int64_t first, int64_t step, int64_t count) {
    const double* const line = x.data.data() + first;
    int64_t best = 0;
    for (int64_t i = 1; i < count; ++i) {
      if (line[i * step] > line[best * step]) best = i;
    }
    const double top = line[best * step];
    for (int64_t i = 0; edge > 0 && i < count; ++i) {
      const double x_i = line[i * step];
      if (x_i == top || top - x_i > edge) continue;
      if (c.options.edges == Edges::kClosed ? i > best : i < best) best = i;
    }
    y.data.push_back(best);
  });
  return y;
}

AnyTensor cumsum(const NodeContext& c) {
  Tensor y = c.input(0);
  each_line(c.shape, c.node.integer("axis"), [&](int64_t first, int64_t step, int64_t count) {
    double* const line = y.data.data() + first;
    for (int64_t i = 1; i < count; ++i) line[i * step] += line[(i - 1) * step];
  });
  return y;
}
void cumsum_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  each_line(c.shape, c.node.integer("axis"), [&](int64_t first, int64_t step, int64_t count) {
    const double* const g = grad.data.data() + first;
    double* const dx = to.inputs[0]->data.data() + first;
    double total = 0;
    for (int64_t i = count; i-- > 0;) dx[i * step] += total += g[i * step];
  });
}

AnyTensor log_softmax(const NodeContext& c) {
  Tensor y = c.input(0);
  each_line(c.shape, c.node.integer("axis"), [&](int64_t first, int64_t step, int64_t count) {
    double* const line = y.data.data() + first;
    double top = line[0], total = 0;
    for (int64_t i = 1; i < count; ++i) top = std::max(top, line[i * step]);
    for (int64_t i = 0; i < count; ++i) total += std::exp(line[i * step] - top);
    for (int64_t i = 0; i < count; ++i) line[i * step] -= top + std::log(total);
  });
  return y;
}
void log_softmax_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  each_line(c.shape, c.node.integer("axis"), [&](int64_t first, int64_t step, int64_t count) {
    const double *const g = grad.data.data() + first, *const line = y.data.data() + first;
    double* const dx = to.inputs[0]->data.data() + first;
    double total = 0;
    for (int64_t i = 0; i < count; ++i) total += g[i * step];
    for (int64_t i = 0; i < count; ++i) dx[i * step] += g[i * step] - std::exp(line[i * step]) * total;
  });
}

// visit(i, at): element i of the output is element `at` of the input.
template <typename Visit>
void each_from(const NodeContext& c, const Strides& strides, int64_t offset, const Visit& visit) {
  walk(c.shape, strides, strides, [&](int64_t i, int64_t at, int64_t) {
    visit(static_cast<size_t>(i), static_cast<size_t>(offset + at));
  });
}

// Strides and offset in the input of a slice, a flip or an expand.
std::pair<Strides, int64_t> view_of(const NodeContext& c) {
  const Shape& x = tensor::shape_of(*c.inputs[0]);
  Strides strides = strides_of(x);
  int64_t offset = 0;
  if (c.node.op == ir::Op::kSlice) {
    int64_t& stride = strides[static_cast<size_t>(c.node.integer("axis"))];
    offset = c.node.integer("begin") * stride;
    stride *= c.node.integer("step");
  } else if (c.node.op == ir::Op::kFlip) {
    for (const int64_t axis : c.node.integers("axes")) {
      const auto a = static_cast<size_t>(axis);
      offset += (x[a] - 1) * strides[a];
      strides[a] = -strides[a];
    }
  } else {
    strides = broadcast_strides(x, c.shape);
  }
  return {strides, offset};
}

AnyTensor viewed(const NodeContext& c) {
  const auto [strides, offset] = view_of(c);
  return std::visit(
      [&](const auto& x) -> AnyTensor {
        auto y = x;
        y.shape = c.shape;
        y.data.resize(static_cast<size_t>(tensor::elements(c.shape)));
        each_from(c, strides, offset, [&](size_t i, size_t at) { y.data[i] = x.data[at]; });
        return y;
      },
      *c.inputs[0]);
}
void viewed_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  const auto [strides, offset] = view_of(c);
  each_from(c, strides, offset, [&](size_t i, size_t at) { to.inputs[0]->data[at] += grad.data[i]; });
}

// A batch of products: where the matrices of each begin.
struct Products {
  int64_t rows, inner, columns;
  std::vector<int64_t> a, b;  // first elements, by product
  Ints ones, a_rows, b_rows, y_rows;

  explicit Products(const NodeContext& c) {
    const Shape &as = c.input(0).shape, &bs = c.input(1).shape;
    const size_t rank = as.size();
    rows = as[rank - 2], inner = as[rank - 1], columns = bs[rank - 1];
    const auto front = [rank](Shape shape) {
      shape.resize(rank - 2);
      return shape;
    };
    const Shape lead = front(c.shape);
    const auto strides = [&](const Shape& shape, int64_t size) {
      Strides made = broadcast_strides(front(shape), lead);
      for (int64_t& stride : made) stride *= size;
      return made;
    };
    walk(lead, strides(as, rows * inner), strides(bs, inner * columns), [&](int64_t, int64_t ia, int64_t ib) {
      a.push_back(ia);
      b.push_back(ib);
    });
    ones = strided(std::max({rows, inner, columns}), 1);
    a_rows = strided(rows, inner), b_rows = strided(inner, columns), y_rows = strided(rows, columns);
  }
};

AnyTensor matmul(const NodeContext& c) {
  const Products p(c);
  Tensor y = c.make();
  const double *const a = c.input(0).data.data(), *const b = c.input(1).data.data();
  const auto count = static_cast<int64_t>(p.a.size());
  const int threads = threads_for(count * p.rows * p.inner * p.columns, c.options.threads);
  for_each_range(count, 4, threads, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const auto at = static_cast<size_t>(n);
      gemm(p.rows, p.columns, p.inner, {a + p.a[at], p.a_rows.data(), p.ones.data()},
           {b + p.b[at], p.b_rows.data(), p.ones.data()},
           {y.data.data() + n * p.rows * p.columns, p.y_rows.data(), p.ones.data()});
    }
  });
  return y;
}

// dA += dY B^T, dB += A^T dY. One after the other, as products may share a matrix.
void matmul_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  const Products p(c);
  const double *const a = c.input(0).data.data(), *const b = c.input(1).data.data();
  for (size_t n = 0; n < p.a.size(); ++n) {
    const double* const g = grad.data.data() + static_cast<int64_t>(n) * p.rows * p.columns;
    if (to.inputs[0] != nullptr) {
      gemm(p.rows, p.inner, p.columns, {g, p.y_rows.data(), p.ones.data()},
           {b + p.b[n], p.ones.data(), p.b_rows.data()},
           {to.inputs[0]->data.data() + p.a[n], p.a_rows.data(), p.ones.data()});
    }
    if (to.inputs[1] != nullptr) {
      gemm(p.inner, p.columns, p.rows, {a + p.a[n], p.ones.data(), p.a_rows.data()},
           {g, p.y_rows.data(), p.ones.data()},
           {to.inputs[1]->data.data() + p.b[n], p.b_rows.data(), p.ones.data()});
    }
  }
}

AnyTensor cast(const NodeContext& c) {
  IntTensor y{.shape = c.shape, .data = {}};
  for (const double x : c.input(0).data) y.data.push_back(static_cast<int64_t>(x));
  return y;
}
AnyTensor passed_on(const NodeContext& c) { return c.input(0); }
void no_backward(const NodeContext&, const Tensor&, const Tensor&, const Gradients&) {}

// visit(i, at): element i of the output is element `at` of the input; -1 where the place does not exist.
template <typename Visit>
void each_taken(const NodeContext& c, const Visit& visit) {
  const auto axis = static_cast<size_t>(c.node.integer("axis"));
  const auto& places = c.integers(1).data;
  const int64_t size = c.input(0).shape[axis], inner = strides_of(c.shape)[axis];
  const auto count = static_cast<int64_t>(places.size());
  const int64_t outer = tensor::elements(c.shape) / (count * inner);
  for (int64_t o = 0, i = 0; o < outer; ++o) {
    for (const int64_t place : places) {
      const bool exists = place >= 0 && place < size;
      for (int64_t j = 0; j < inner; ++j, ++i)
        visit(static_cast<size_t>(i), exists ? (o * size + place) * inner + j : -1);
    }
  }
}

AnyTensor take(const NodeContext& c) {
  Tensor y = c.make();
  each_taken(c, [&](size_t i, int64_t at) {
    y.data[i] = at < 0 ? std::numeric_limits<double>::quiet_NaN() : c.input(0).data[static_cast<size_t>(at)];
  });
  return y;
}
void take_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  each_taken(c, [&](size_t i, int64_t at) {
    if (at >= 0) to.inputs[0]->data[static_cast<size_t>(at)] += grad.data[i];
  });
}

// visit(e, v): row e of the tensor with an element for each place, and the row v of `whole` that place names; -1 if
// there is no such row.
template <typename Visit>
void each_placed(const NodeContext& c, const Tensor& whole, const Visit& visit) {
  const IntTensor& places = c.integers(1);
  const auto axis = static_cast<size_t>(c.node.integer("axis"));
  const int64_t size = whole.shape[axis], count = places.shape[axis];
  for (int64_t e = 0; e < static_cast<int64_t>(places.data.size()); ++e) {
    const int64_t place = places.data[static_cast<size_t>(e)];
    visit(e, place >= 0 && place < size ? e / count * size + place : -1);
  }
}

// Adds row `from` of some elements to row `to` of others.
void add_row(const NodeContext& c, const Tensor& x, int64_t from, Tensor& y, int64_t to) {
  const int64_t width = strides_of(x.shape)[static_cast<size_t>(c.node.integer("axis"))];
  for (int64_t j = 0; j < width; ++j)
    y.data[static_cast<size_t>(to * width + j)] += x.data[static_cast<size_t>(from * width + j)];
}

AnyTensor gather(const NodeContext& c) {
  Tensor y = c.make();
  const Tensor& x = c.input(0);
  const auto width = static_cast<int64_t>(y.data.size() / c.integers(1).data.size());
  each_placed(c, x, [&](int64_t e, int64_t v) {
    if (v < 0)
      return void(std::fill_n(y.data.begin() + e * width, width, std::numeric_limits<double>::quiet_NaN()));
    add_row(c, x, v, y, e);
  });
  return y;
}
void gather_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  each_placed(c, c.input(0), [&](int64_t e, int64_t v) {
    if (v >= 0) add_row(c, grad, e, *to.inputs[0], v);
  });
}

// A place that does not exist makes all of the result NaN: frameworks drop it, fail or write elsewhere.
AnyTensor scatter_add(const NodeContext& c) {
  Tensor y = c.make();
  bool exist = true;
  each_placed(c, y, [&](int64_t e, int64_t v) {
    exist = exist && v >= 0;
    if (v >= 0) add_row(c, c.input(0), e, y, v);
  });
  return exist ? y : tensor::full(c.shape, std::numeric_limits<double>::quiet_NaN());
}
void scatter_add_backward(const NodeContext& c, const Tensor& y, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  each_placed(c, y, [&](int64_t e, int64_t v) {
    if (v >= 0) add_row(c, grad, v, *to.inputs[0], e);
  });
}

}  // namespace

std::vector<OpFunctions> axis_ops() {
  using ir::Op;
  return {{Op::kSum, sum, sum_backward},
          {Op::kMean, mean, mean_backward},
          {Op::kMax, max, extreme_backward},
          {Op::kMin, min, extreme_backward},
          {Op::kLogsumexp, logsumexp, logsumexp_backward},
          {Op::kProd, prod, prod_backward},
          {Op::kArgmax, argmax, no_backward},
          {Op::kCumsum, cumsum, cumsum_backward},
          {Op::kLogSoftmax, log_softmax, log_softmax_backward},
          {Op::kSlice, viewed, viewed_backward},
          {Op::kFlip, viewed, viewed_backward},
          {Op::kExpand, viewed, viewed_backward},
          {Op::kMatmul, matmul, matmul_backward},
          {Op::kCast, cast, no_backward},
          {Op::kTake, take, take_backward},
          {Op::kGather, gather, gather_backward},
          {Op::kScatterAdd, scatter_add, scatter_add_backward},
          {Op::kStopGradient, passed_on, no_backward}};
}

}  // namespace bakeoff::referee
