// Pools and resize. A pool along one, two or three axes is the same loop over d, h and w; missing axes have
// size 1. A window is cut to the elements that exist. Padding therefore never wins a maximum, and an
// average adds it to the divisor only (count_include_pad).
//
// max_pool saves the index of each maximum for the backward pass. With Edges::kClosed (eval_options.h) it
// takes the last of the values that rounding cannot tell apart, otherwise the first.
//
// A resize is linear along each axis and goes over one axis after the other. each_tap() lists its weights:
// forwards y[j] += w x[i], backwards dx[i] += w dy[j].

#include <algorithm>

#include "ir/resize.h"
#include "referee/ops.h"
#include "referee/parallel.h"

namespace bakeoff::referee {
namespace {

constexpr int64_t kPlaneGrain = 64;  // planes (image, channel) of one piece

// The real elements of a window: places [begin, end) along one axis.
struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
struct Window {
  Range d, h, w;
  int64_t volume() const { return d.size() * h.size() * w.size(); }
};

// A pool along one to three axes; depth and height are 1 where the picture lacks them.
struct Pool {
  struct Axis {
    int64_t size = 1, out = 1, kernel = 1, stride = 1, before = 0;
    Range range(int64_t place) const {
      const int64_t begin = place * stride - before;
      return {std::max<int64_t>(begin, 0), std::min(begin + kernel, size)};
    }
  };
  Axis d, h, w;
  int64_t planes;

  explicit Pool(const NodeContext& c) : planes(c.shape[0] * c.shape[1]) {
    const auto &kernel = c.node.integers("kernel"), &stride = c.node.integers("stride");
    const auto& pad = c.node.integers("pad");
    Axis* const all[] = {&d, &h, &w};
    for (size_t axis = 0; axis < kernel.size(); ++axis) {
      *all[3 - kernel.size() + axis] = {c.input(0).shape[axis + 2], c.shape[axis + 2], kernel[axis],
                                        stride[axis], pad[2 * axis]};
    }
  }
  int64_t kernel() const { return d.kernel * h.kernel * w.kernel; }
  int64_t plane() const { return d.size * h.size * w.size; }

  // visit(out, plane, window): index in the output, first element of the input plane, real part of the
  // window.
  template <typename Visit>
  void each(int wanted, const Visit& visit) const {
    const int64_t places = d.out * h.out * w.out;
    const int threads = threads_for(planes * places * kernel(), wanted);
    for_each_range(planes, kPlaneGrain, threads, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        int64_t out = p * places;
        for (int64_t i = 0; i < d.out; ++i) {
          for (int64_t j = 0; j < h.out; ++j) {
            for (int64_t k = 0; k < w.out; ++k)
              visit(out++, p * plane(), Window{d.range(i), h.range(j), w.range(k)});
          }
        }
      }
    });
  }
  // visit(element) for every real element of a window, in row-major order.
  template <typename Visit>
  void elements(int64_t plane, const Window& at, const Visit& visit) const {
    for (int64_t i = at.d.begin; i < at.d.end; ++i) {
      for (int64_t j = at.h.begin; j < at.h.end; ++j) {
        const int64_t row = plane + (i * h.size + j) * w.size;
        for (int64_t k = row + at.w.begin; k < row + at.w.end; ++k) visit(k);
      }
    }
  }
};

// Keeps where each maximum lies.
AnyTensor max_pool(const NodeContext& c) {
  const Pool pool(c);
  const double* const x = c.input(0).data.data();
  Tensor y = c.make();
  c.saved.indices.resize(y.data.size());
  const double edge = c.options.edges == Edges::kClosed ? c.edge() : 0;
  pool.each(c.options.threads, [&](int64_t out, int64_t plane, const Window& at) {
    int64_t best = plane + (at.d.begin * pool.h.size + at.h.begin) * pool.w.size + at.w.begin;
    pool.elements(plane, at, [&](int64_t i) {
      if (x[i] > x[best] || x[i] != x[i]) best = i;  // NaN wins
      if (edge > 0 && x[i] != x[best] && x[i] > x[best] - edge) best = i;
    });
    y.data[static_cast<size_t>(out)] = x[best];
    c.saved.indices[static_cast<size_t>(out)] = best;
  });
  return y;
}

void max_pool_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  double* const dx = to.inputs[0]->data.data();
  const Pool pool(c);
  pool.each(c.options.threads, [&](int64_t out, int64_t, const Window&) {
    dx[c.saved.indices[static_cast<size_t>(out)]] += grad.data[static_cast<size_t>(out)];
  });
}

double divisor(const NodeContext& c, const Pool& pool, const Window& at) {
  return static_cast<double>(c.node.flag("count_include_pad") ? pool.kernel() : at.volume());
}

AnyTensor avg_pool(const NodeContext& c) {
  const Pool pool(c);
  const double* const x = c.input(0).data.data();
  Tensor y = c.make();
  pool.each(c.options.threads, [&](int64_t out, int64_t plane, const Window& at) {
    double sum = 0;
    pool.elements(plane, at, [&](int64_t i) { sum += x[i]; });
    y.data[static_cast<size_t>(out)] = sum / divisor(c, pool, at);
  });
  return y;
}

void avg_pool_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  double* const dx = to.inputs[0]->data.data();
  const Pool pool(c);
  pool.each(c.options.threads, [&](int64_t out, int64_t plane, const Window& at) {
    const double share = grad.data[static_cast<size_t>(out)] / divisor(c, pool, at);
    pool.elements(plane, at, [&](int64_t i) { dx[i] += share; });
  });
}

AnyTensor global_avg_pool2d(const NodeContext& c) {
  const Tensor& x = c.input(0);
  Tensor y = c.make();
  const size_t area = x.data.size() / y.data.size();
  for (size_t i = 0; i < x.data.size(); ++i) y.data[i / area] += x.data[i];
  for (double& mean : y.data) mean /= static_cast<double>(area);
  return y;
}

void global_avg_pool2d_backward(const NodeContext&, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  std::vector<double>& dx = to.inputs[0]->data;
  const size_t area = dx.size() / grad.data.size();
  for (size_t i = 0; i < dx.size(); ++i) dx[i] += grad.data[i / area] / static_cast<double>(area);
}

// Calls visit(i, j, weight) for what element i before an axis is resized gives to element j behind it. `from`:
// the sizes before; `to`: the new size.
template <typename Visit>
void each_tap(const NodeContext& c, const Shape& from, size_t axis, int64_t to, const Visit& visit) {
  const int64_t count = from[axis], inner = ir::product(from, axis + 1, from.size());
  const auto taps = ir::resize_taps(c.node, count, to);
  const int64_t outer = ir::product(from, 0, axis), grain = std::max<int64_t>(1, kPlaneGrain / inner);
  const int threads = threads_for(outer * to * inner, c.options.threads);
  for_each_range(outer, grain, threads, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t place = 0; place < to; ++place) {
        const ir::Tap& tap = taps[static_cast<size_t>(place)];
        const int64_t low = (o * count + tap.low) * inner, high = (o * count + tap.high) * inner;
        const int64_t out = (o * to + place) * inner;
        for (int64_t k = 0; k < inner; ++k) {
          visit(static_cast<size_t>(low + k), static_cast<size_t>(out + k), 1 - tap.share);
          if (tap.share != 0) visit(static_cast<size_t>(high + k), static_cast<size_t>(out + k), tap.share);
        }
      }
    }
  });
}

// One axis after the other.
AnyTensor resize(const NodeContext& c) {
  Tensor x = c.input(0);
  for (size_t axis = 2; axis < c.shape.size(); ++axis) {
    Shape shape = x.shape;
    shape[axis] = c.shape[axis];
    Tensor y = tensor::zeros(shape);
    each_tap(c, x.shape, axis, c.shape[axis],
             [&](size_t i, size_t j, double weight) { y.data[j] += weight * x.data[i]; });
    x = std::move(y);
  }
  return x;
}

void resize_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  Tensor g = grad;
  for (size_t axis = c.shape.size(); axis-- > 2;) {
    Shape shape = g.shape;
    shape[axis] = c.input(0).shape[axis];
    Tensor before = tensor::zeros(shape);
    each_tap(c, shape, axis, c.shape[axis],
             [&](size_t i, size_t j, double weight) { before.data[i] += weight * g.data[j]; });
    g = std::move(before);
  }
  for (size_t i = 0; i < g.data.size(); ++i) to.inputs[0]->data[i] += g.data[i];
}

}  // namespace

std::vector<OpFunctions> pooling_ops() {
  return {{ir::Op::kMaxPool1d, max_pool, max_pool_backward},
          {ir::Op::kMaxPool2d, max_pool, max_pool_backward},
          {ir::Op::kMaxPool3d, max_pool, max_pool_backward},
          {ir::Op::kAvgPool1d, avg_pool, avg_pool_backward},
          {ir::Op::kAvgPool2d, avg_pool, avg_pool_backward},
          {ir::Op::kAvgPool3d, avg_pool, avg_pool_backward},
          {ir::Op::kGlobalAvgPool2d, global_avg_pool2d, global_avg_pool2d_backward},
          {ir::Op::kResize, resize, resize_backward}};
}

}  // namespace bakeoff::referee
