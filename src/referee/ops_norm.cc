// Batch and layer normalisation, softmax, local response normalisation.
//
// Means and variances are taken in two passes, because the difference of the mean square and the squared mean
// loses all digits where the mean is large. Sums are float64, except where the referee imitates float32
// (round_to_float32): there they are made as a framework makes them, one element after the other, since this
// loses much more than one rounding.
//
// Some frameworks keep the unbiased variance, others the biased one. Both are computed (running.biased,
// running.unbiased), and a contender is compared with its own.

#include <algorithm>
#include <cmath>

#include "referee/ops.h"
#include "referee/parallel.h"
#include "referee/walk.h"

namespace bakeoff::referee {
namespace {

// A value seen as [outer, count, inner]; an element lies at (o * count + i) * inner + j.
struct Cut {
  int64_t outer = 1, count = 1, inner = 1;
  Cut(const Shape& shape, size_t axis) : count(shape[axis]) {
    for (size_t i = 0; i < axis; ++i) outer *= shape[i];
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  }
};

struct Moments {
  double mean = 0, variance = 0;  // biased
};

// Over `runs` stretches of `length` elements, `stride` apart; sums are made in `Real`, one element after the other.
template <typename Real>
Moments summed(const double* x, int64_t runs, int64_t length, int64_t stride) {
  const auto mean_of = [&](auto term) {
    Real sum = 0;
    for (int64_t r = 0; r < runs; ++r) {
      for (int64_t i = 0; i < length; ++i) sum += static_cast<Real>(term(x[r * stride + i]));
    }
    return static_cast<double>(sum) / static_cast<double>(runs * length);
  };
  const double mean = mean_of([](double value) { return value; });
  return {mean, mean_of([mean](double value) { return (value - mean) * (value - mean); })};
}

// In float32 a long sum loses more than one rounding of its result: of the squares of 177,608 values, added one after
// the other as TensorFlow does on processors, 5e-5, and of 5.7 million 7e-3.
Moments moments(const NodeContext& c, const double* x, int64_t runs, int64_t length, int64_t stride) {
  return c.options.round_to_float32 ? summed<float>(x, runs, length, stride)
                                    : summed<double>(x, runs, length, stride);
}

void update_running(const NodeContext& c, int64_t channel, const Moments& m, int64_t count) {
  const double momentum = c.node.real("momentum");
  const auto at = static_cast<size_t>(channel);
  const auto mean = static_cast<size_t>(c.node.param("mean"));
  const auto var = static_cast<size_t>(c.node.param("var"));
  const auto blend = [&](Weights& statistics, size_t id, double batch) {
    double& running = statistics[id].data[at];
    running = (1 - momentum) * running + momentum * batch;
  };
  const double unbiased = m.variance * static_cast<double>(count) / static_cast<double>(count - 1);
  blend(c.running.biased, mean, m.mean);
  blend(c.running.unbiased, mean, m.mean);
  blend(c.running.biased, var, m.variance);
  blend(c.running.unbiased, var, unbiased);
}

// A parameter of a norm, or what stands for one that it lacks.
struct Affine {
  const Tensor* values;
  double fallback;
  double at(size_t i) const { return values == nullptr ? fallback : values->data[i]; }
};
Affine scale_of(const NodeContext& c) { return {c.param("weight"), 1}; }
Affine shift_of(const NodeContext& c) { return {c.param("bias"), 0}; }
void add_to(Tensor* gradient, size_t i, double amount) {
  if (gradient != nullptr) gradient->data[i] += amount;
}

// Keeps (mean, 1 / sqrt(variance + eps)) of every channel for backward.
AnyTensor batch_norm(const NodeContext& c) {
  const Tensor& x = c.input(0);
  const Cut cut(x.shape, 1);
  const double eps = c.node.real("eps");
  Tensor y = c.make();
  for (int64_t ch = 0; ch < cut.count; ++ch) {
    const auto at = static_cast<size_t>(ch);
    Moments m{c.param("mean")->data[at], c.param("var")->data[at]};
    if (c.options.train) {
      m = moments(c, x.data.data() + ch * cut.inner, cut.outer, cut.inner, cut.count * cut.inner);
      update_running(c, ch, m, cut.outer * cut.inner);
    }
    const double inverse = 1 / std::sqrt(m.variance + eps);
    c.saved.reals.push_back(m.mean);
    c.saved.reals.push_back(inverse);
    const double scale = c.param("weight")->data[at], shift = c.param("bias")->data[at];
    for (int64_t o = 0; o < cut.outer; ++o) {
      const int64_t first = (o * cut.count + ch) * cut.inner;
      for (int64_t i = first; i < first + cut.inner; ++i) {
        y.data[static_cast<size_t>(i)] = (x.data[static_cast<size_t>(i)] - m.mean) * inverse * scale + shift;
      }
    }
  }
  return y;
}

// With x^ = (x - mean) inverse and g the output's gradient, over M elements:
// dscale = sum g x^, dshift = sum g, dx = scale inverse (g - dshift / M - x^ dscale / M); where the
// statistics are constants (not training) dx = scale inverse g.
void batch_norm_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  const Tensor& x = c.input(0);
  const Cut cut(x.shape, 1);
  const auto count = static_cast<double>(cut.outer * cut.inner);
  for (int64_t ch = 0; ch < cut.count; ++ch) {
    const auto at = static_cast<size_t>(ch);
    const double mean = c.saved.reals[2 * at], inverse = c.saved.reals[2 * at + 1];
    const auto each = [&](auto visit) {
      for (int64_t o = 0; o < cut.outer; ++o) {
        const auto first = static_cast<size_t>((o * cut.count + ch) * cut.inner);
        for (size_t i = first; i < first + static_cast<size_t>(cut.inner); ++i) visit(i);
      }
    };
    double dscale = 0, dshift = 0;
    each([&](size_t i) {
      dscale += grad.data[i] * (x.data[i] - mean) * inverse;
      dshift += grad.data[i];
    });
    add_to(to.param(c.node, "weight"), at, dscale);
    add_to(to.param(c.node, "bias"), at, dshift);
    Tensor* const dx = to.inputs[0];
    if (dx == nullptr) continue;
    const double factor = c.param("weight")->data[at] * inverse;
    const double a = c.options.train ? dshift / count : 0, b = c.options.train ? dscale / count : 0;
    each([&](size_t i) { dx->data[i] += factor * (grad.data[i] - a - (x.data[i] - mean) * inverse * b); });
  }
}

// Stretches of `size` elements that are normalised each by itself, and the parameter of each element.
struct Stretches {
  int64_t size, count;
  int64_t groups = 1, channels = 0, places = 1;  // of a group norm: of a row, of a group, of a channel

  // The last `dims` axes.
  static Stretches tail(const NodeContext& c) {
    const size_t first = c.shape.size() - static_cast<size_t>(c.node.integer("dims"));
    const int64_t size = ir::product(c.shape, first, c.shape.size());
    return {size, tensor::elements(c.shape) / size};
  }
  static Stretches grouped(const NodeContext& c) {
    const int64_t groups = c.node.integer("groups"), channels = c.shape[1] / groups;
    const int64_t places = ir::product(c.shape, 2, c.shape.size());
    return {channels * places, c.shape[0] * groups, groups, channels, places};
  }
  size_t parameter(int64_t stretch, int64_t i) const {
    return static_cast<size_t>(channels == 0 ? i : stretch % groups * channels + i / places);
  }
};

// Keeps (mean, 1 / sqrt(variance + eps)) of every stretch for backward; the mean is 0 where it is `about_zero`.
AnyTensor normalise(const NodeContext& c, const Stretches& cut, bool about_zero = false) {
  const Affine scale = scale_of(c), shift = shift_of(c);
  Tensor y = c.make();
  for (int64_t r = 0; r < cut.count; ++r) {
    const double* const from = c.input(0).data.data() + r * cut.size;
    double* const out = y.data.data() + r * cut.size;
    Moments m = moments(c, from, 1, cut.size, cut.size);
    if (about_zero) m = {0, m.variance + m.mean * m.mean};
    const double inverse = 1 / std::sqrt(m.variance + c.node.real("eps"));
    c.saved.reals.push_back(m.mean);
    c.saved.reals.push_back(inverse);
    for (int64_t i = 0; i < cut.size; ++i) {
      const size_t p = cut.parameter(r, i);
      out[i] = (from[i] - m.mean) * inverse * scale.at(p) + shift.at(p);
    }
  }
  return y;
}

// With u = g scale: dx = inverse (u - mean(u) - x^ mean(u x^)), without mean(u) where the mean is 0.
void normalise_backward(const NodeContext& c, const Stretches& cut, const Tensor& grad, const Gradients& to,
                        bool about_zero = false) {
  const Affine scale = scale_of(c);
  Tensor *const dscale = to.param(c.node, "weight"), *const dshift = to.param(c.node, "bias");
  for (int64_t r = 0; r < cut.count; ++r) {
    const double* const from = c.input(0).data.data() + r * cut.size;
    const double* const g = grad.data.data() + r * cut.size;
    const double mean = c.saved.reals[static_cast<size_t>(2 * r)];
    const double inverse = c.saved.reals[static_cast<size_t>(2 * r + 1)];
    double mean_u = 0, mean_uh = 0;
    for (int64_t i = 0; i < cut.size; ++i) {
      const size_t p = cut.parameter(r, i);
      const double hat = (from[i] - mean) * inverse;
      add_to(dscale, p, g[i] * hat);
      add_to(dshift, p, g[i]);
      if (!about_zero) mean_u += g[i] * scale.at(p) / static_cast<double>(cut.size);
      mean_uh += g[i] * scale.at(p) * hat / static_cast<double>(cut.size);
    }
    if (to.inputs[0] == nullptr) continue;
    double* const dx = to.inputs[0]->data.data() + r * cut.size;
    for (int64_t i = 0; i < cut.size; ++i) {
      const double hat = (from[i] - mean) * inverse;
      dx[i] += inverse * (g[i] * scale.at(cut.parameter(r, i)) - mean_u - hat * mean_uh);
    }
  }
}

AnyTensor layer_norm(const NodeContext& c) { return normalise(c, Stretches::tail(c)); }
void layer_norm_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  normalise_backward(c, Stretches::tail(c), grad, to);
}
AnyTensor rms_norm(const NodeContext& c) { return normalise(c, Stretches::tail(c), true); }
void rms_norm_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  normalise_backward(c, Stretches::tail(c), grad, to, true);
}
AnyTensor group_norm(const NodeContext& c) { return normalise(c, Stretches::grouped(c)); }
void group_norm_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  normalise_backward(c, Stretches::grouped(c), grad, to);
}

AnyTensor softmax(const NodeContext& c) {
  const Tensor& x = c.input(0);
  Tensor y = c.make();
  each_line(c.shape, c.node.integer("axis"), [&](int64_t first, int64_t step, int64_t count) {
    const double* const from = x.data.data() + first;
    double* const out = y.data.data() + first;
    double top = from[0], sum = 0;
    for (int64_t i = 1; i < count; ++i) top = std::max(top, from[i * step]);
    for (int64_t i = 0; i < count; ++i) sum += out[i * step] = std::exp(from[i * step] - top);
    for (int64_t i = 0; i < count; ++i) out[i * step] /= sum;
  });
  return y;
}

// dx = y (g - sum g y).
void softmax_backward(const NodeContext& c, const Tensor& output, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  each_line(c.shape, c.node.integer("axis"), [&](int64_t first, int64_t step, int64_t count) {
    const double* const y = output.data.data() + first;
    const double* const g = grad.data.data() + first;
    double* const dx = to.inputs[0]->data.data() + first;
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += g[i * step] * y[i * step];
    for (int64_t i = 0; i < count; ++i) dx[i * step] += y[i * step] * (g[i * step] - sum);
  });
}

// visit(channel) for every channel in the window of channel `ch`.
template <typename Visit>
void each_near(const NodeContext& c, int64_t ch, const Visit& visit) {
  const int64_t size = c.node.integer("size");
  const int64_t first = ch - size / 2;
  for (int64_t near = std::max<int64_t>(first, 0); near < std::min(first + size, c.shape[1]); ++near)
    visit(near);
}

// Keeps k + alpha s for backward.
AnyTensor lrn(const NodeContext& c) {
  const Tensor& x = c.input(0);
  const double alpha = c.node.real("alpha"), beta = c.node.real("beta");
  const int64_t area = c.shape[2] * c.shape[3], image = c.shape[1] * area;
  c.saved.reals.assign(x.data.size(), c.node.real("k"));
  Tensor y = c.make();
  const int threads = threads_for(c.shape[0] * image * c.node.integer("size"), c.options.threads);
  for_each_range(c.shape[0], 1, threads, [&](int64_t row, int64_t) {
    const double* const from = x.data.data() + row * image;
    double* const sums = c.saved.reals.data() + row * image;
    double* const out = y.data.data() + row * image;
    for (int64_t ch = 0; ch < c.shape[1]; ++ch) {
      each_near(c, ch, [&](int64_t near) {
        const double* const line = from + near * area;
        for (int64_t i = 0; i < area; ++i) sums[ch * area + i] += alpha * line[i] * line[i];
      });
    }
    for (int64_t i = 0; i < image; ++i) out[i] = from[i] * std::pow(sums[i], -beta);
  });
  return y;
}

// With S = k + alpha s: dx_j = g_j S_j^-beta - 2 alpha beta x_j sum g_c x_c S_c^(-beta-1) over the channels c
// that have j near.
void lrn_backward(const NodeContext& c, const Tensor& output, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  const double* const x = c.input(0).data.data();
  const double factor = 2 * c.node.real("alpha") * c.node.real("beta");
  const int64_t area = c.shape[2] * c.shape[3], image = c.shape[1] * area;
  const int threads = threads_for(c.shape[0] * image * c.node.integer("size"), c.options.threads);
  for_each_range(c.shape[0], 1, threads, [&](int64_t row, int64_t) {
    const double* const g = grad.data.data() + row * image;
    const double* const y = output.data.data() + row * image;
    const double* const sums = c.saved.reals.data() + row * image;
    double* const dx = to.inputs[0]->data.data() + row * image;
    for (int64_t i = 0; i < image; ++i) {
      dx[i] += g[i] * std::pow(sums[i], -c.node.real("beta"));
    }
    for (int64_t ch = 0; ch < c.shape[1]; ++ch) {
      each_near(c, ch, [&](int64_t near) {
        for (int64_t i = 0; i < area; ++i) {
          const int64_t at = ch * area + i, j = near * area + i;
          dx[j] -= factor * x[row * image + j] * g[at] * y[at] / sums[at];
        }
      });
    }
  });
}

}  // namespace

std::vector<OpFunctions> norm_ops() {
  return {{ir::Op::kBatchNorm, batch_norm, batch_norm_backward},
          {ir::Op::kLayerNorm, layer_norm, layer_norm_backward},
          {ir::Op::kRmsNorm, rms_norm, rms_norm_backward},
          {ir::Op::kGroupNorm, group_norm, group_norm_backward},
          {ir::Op::kSoftmax, softmax, softmax_backward},
          {ir::Op::kLrn, lrn, lrn_backward}};
}

}  // namespace bakeoff::referee
