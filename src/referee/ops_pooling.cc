#include <algorithm>

#include "referee/ops.h"
#include "referee/parallel.h"

namespace bakeoff::referee {
namespace {

constexpr int64_t kPlaneGrain = 64;  // planes (image, channel) of one piece

// The real elements of a window: rows [top, bottom), columns [left, right).
struct Window {
  int64_t top, bottom, left, right;
  int64_t area() const { return (bottom - top) * (right - left); }
};

struct Pool {
  int64_t height, width, out_height, out_width, planes;
  const std::vector<int64_t>&kernel, &stride, &pad;
  explicit Pool(const NodeContext& c)
      : height(c.input(0).shape[2]),
        width(c.input(0).shape[3]),
        out_height(c.shape[2]),
        out_width(c.shape[3]),
        planes(c.shape[0] * c.shape[1]),
        kernel(c.node.integers("kernel")),
        stride(c.node.integers("stride")),
        pad(c.node.integers("pad")) {}

  Window window(int64_t h, int64_t w) const {
    const int64_t top = h * stride[0] - pad[0], left = w * stride[1] - pad[2];
    return {std::max<int64_t>(top, 0), std::min(top + kernel[0], height), std::max<int64_t>(left, 0),
            std::min(left + kernel[1], width)};
  }
  // visit(out, plane, window): index in the output, first element of the input plane, real part of the
  // window.
  template <typename Visit>
  void each(int wanted, const Visit& visit) const {
    const int threads = threads_for(planes * out_height * out_width * kernel[0] * kernel[1], wanted);
    for_each_range(planes, kPlaneGrain, threads, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        int64_t out = plane * out_height * out_width;
        for (int64_t h = 0; h < out_height; ++h) {
          for (int64_t w = 0; w < out_width; ++w) visit(out++, plane * height * width, window(h, w));
        }
      }
    });
  }
};

// Keeps where each maximum lies.
AnyTensor max_pool2d(const NodeContext& c) {
  const Pool pool(c);
  const double* const x = c.input(0).data.data();
  Tensor y = c.make();
  c.saved.indices.resize(y.data.size());
  const double edge = c.options.edges == Edges::kClosed ? c.edge() : 0;
  pool.each(c.options.threads, [&](int64_t out, int64_t plane, const Window& at) {
    int64_t best = plane + at.top * pool.width + at.left;
    for (int64_t h = at.top; h < at.bottom; ++h) {
      for (int64_t i = plane + h * pool.width + at.left; i < plane + h * pool.width + at.right; ++i) {
        if (x[i] > x[best] || x[i] != x[i]) best = i;  // NaN wins
        if (edge > 0 && x[i] != x[best] && x[i] > x[best] - edge) best = i;
      }
    }
    y.data[static_cast<size_t>(out)] = x[best];
    c.saved.indices[static_cast<size_t>(out)] = best;
  });
  return y;
}

void max_pool2d_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  double* const dx = to.inputs[0]->data.data();
  const Pool pool(c);
  pool.each(c.options.threads, [&](int64_t out, int64_t, const Window&) {
    dx[c.saved.indices[static_cast<size_t>(out)]] += grad.data[static_cast<size_t>(out)];
  });
}

double divisor(const NodeContext& c, const Pool& pool, const Window& at) {
  const bool whole = c.node.flag("count_include_pad");
  return static_cast<double>(whole ? pool.kernel[0] * pool.kernel[1] : at.area());
}

AnyTensor avg_pool2d(const NodeContext& c) {
  const Pool pool(c);
  const double* const x = c.input(0).data.data();
  Tensor y = c.make();
  pool.each(c.options.threads, [&](int64_t out, int64_t plane, const Window& at) {
    double sum = 0;
    for (int64_t h = at.top; h < at.bottom; ++h) {
      for (int64_t w = at.left; w < at.right; ++w) sum += x[plane + h * pool.width + w];
    }
    y.data[static_cast<size_t>(out)] = sum / divisor(c, pool, at);
  });
  return y;
}

void avg_pool2d_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  double* const dx = to.inputs[0]->data.data();
  const Pool pool(c);
  pool.each(c.options.threads, [&](int64_t out, int64_t plane, const Window& at) {
    const double share = grad.data[static_cast<size_t>(out)] / divisor(c, pool, at);
    for (int64_t h = at.top; h < at.bottom; ++h) {
      for (int64_t w = at.left; w < at.right; ++w) dx[plane + h * pool.width + w] += share;
    }
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

}  // namespace

std::vector<OpFunctions> pooling_ops() {
  return {{ir::Op::kMaxPool2d, max_pool2d, max_pool2d_backward},
          {ir::Op::kAvgPool2d, avg_pool2d, avg_pool2d_backward},
          {ir::Op::kGlobalAvgPool2d, global_avg_pool2d, global_avg_pool2d_backward}};
}

}  // namespace bakeoff::referee
