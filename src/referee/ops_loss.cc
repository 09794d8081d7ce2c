#include <algorithm>
#include <cmath>
#include <numeric>

#include "referee/ops.h"

namespace bakeoff::referee {
namespace {

// 1 for a sum, 1 / count for a mean.
double weight(const NodeContext& c, size_t count) {
  return c.node.word("reduction") == "mean" ? 1.0 / static_cast<double>(count) : 1.0;
}

// The largest logit and log sum exp(logit - largest) of a row: nothing overflows.
struct LogSum {
  double top, log_sum;
  LogSum(const double* row, int64_t classes) : top(*std::max_element(row, row + classes)), log_sum(0) {
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(row[i] - top);
    log_sum = std::log(sum);
  }
};

double smoothing(const NodeContext& c) {
  const double ported = c.options.deviations.label_smoothing;
  return ported != 0 ? ported : c.node.real("label_smoothing");
}

// Of the mean: the targets that count. Without any the loss is 0.
size_t counted(const NodeContext& c, const std::vector<int64_t>& labels) {
  const auto ignored = ir::ignore_index(c.node);
  if (!ignored || c.options.deviations.counts_ignored) return labels.size();
  return std::max<size_t>(1, labels.size() - static_cast<size_t>(std::ranges::count(labels, *ignored)));
}

AnyTensor softmax_cross_entropy(const NodeContext& c) {
  const Tensor& logits = c.input(0);
  const std::vector<int64_t>& labels = c.integers(1).data;
  const int64_t classes = logits.shape.back();
  const auto ignored = ir::ignore_index(c.node);
  double sum = 0;
  for (size_t r = 0; r < labels.size(); ++r) {
    if (labels[r] == ignored) continue;
    const double* const row = logits.data.data() + static_cast<int64_t>(r) * classes;
    const LogSum log(row, classes);
    double target = row[labels[r]];
    if (const double smooth = smoothing(c); smooth != 0) {
      const double all = std::accumulate(row, row + classes, 0.0);
      target = (1 - smooth) * target + smooth * all / static_cast<double>(classes);
    }
    sum += log.log_sum + (log.top - target);
  }
  return Tensor{{}, {sum * weight(c, counted(c, labels))}};
}

// dlogits = (softmax - onehot) weight; 0 where the target is ignored.
void softmax_cross_entropy_backward(const NodeContext& c, const Tensor&, const Tensor& grad,
                                    const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  const Tensor& logits = c.input(0);
  const std::vector<int64_t>& labels = c.integers(1).data;
  const int64_t classes = logits.shape.back();
  const double factor = grad.data[0] * weight(c, counted(c, labels));
  const double smooth = smoothing(c);
  const auto ignored = ir::ignore_index(c.node);
  for (size_t r = 0; r < labels.size(); ++r) {
    if (labels[r] == ignored) continue;
    const double* const row = logits.data.data() + static_cast<int64_t>(r) * classes;
    double* const dx = to.inputs[0]->data.data() + static_cast<int64_t>(r) * classes;
    const LogSum log(row, classes);
    for (int64_t i = 0; i < classes; ++i) {
      const double p = std::exp(row[i] - log.top - log.log_sum);
      const double target = (i == labels[r] ? 1 - smooth : 0) + smooth / static_cast<double>(classes);
      dx[i] += factor * (p - target);
    }
  }
}

AnyTensor mse(const NodeContext& c) {
  const std::vector<double>&a = c.input(0).data, &b = c.input(1).data;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return Tensor{{}, {sum * weight(c, a.size())}};
}

void mse_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  const std::vector<double>&a = c.input(0).data, &b = c.input(1).data;
  const double factor = 2 * grad.data[0] * weight(c, a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (to.inputs[0] != nullptr) to.inputs[0]->data[i] += factor * (a[i] - b[i]);
    if (to.inputs[1] != nullptr) to.inputs[1]->data[i] -= factor * (a[i] - b[i]);
  }
}

// Losses of a prediction x and a target t, element by element.
double absolute(double x, double t) { return std::abs(x - t); }
double absolute_slope(double x, double t) { return x > t ? 1 : x < t ? -1 : 0; }
double binary(double x, double t) { return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x))); }
double binary_slope(double x, double t) { return 1 / (1 + std::exp(-x)) - t; }

template <double (*loss)(double, double)>
AnyTensor reduced(const NodeContext& c) {
  const std::vector<double>&a = c.input(0).data, &b = c.input(1).data;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += loss(a[i], b[i]);
  return Tensor{{}, {sum * weight(c, a.size())}};
}

// `slope`: with respect to x; `target_slope`: with respect to t.
template <double (*slope)(double, double), double (*target_slope)(double, double)>
void reduced_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  const std::vector<double>&a = c.input(0).data, &b = c.input(1).data;
  const double factor = grad.data[0] * weight(c, a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (to.inputs[0] != nullptr) to.inputs[0]->data[i] += factor * slope(a[i], b[i]);
    if (to.inputs[1] != nullptr) to.inputs[1]->data[i] += factor * target_slope(a[i], b[i]);
  }
}
double absolute_target_slope(double x, double t) { return -absolute_slope(x, t); }
double binary_target_slope(double x, double) { return -x; }

}  // namespace

std::vector<OpFunctions> loss_ops() {
  return {{ir::Op::kSoftmaxCrossEntropy, softmax_cross_entropy, softmax_cross_entropy_backward},
          {ir::Op::kMse, mse, mse_backward},
          {ir::Op::kL1, reduced<absolute>, reduced_backward<absolute_slope, absolute_target_slope>},
          {ir::Op::kBceWithLogits, reduced<binary>, reduced_backward<binary_slope, binary_target_slope>}};
}

}  // namespace bakeoff::referee
