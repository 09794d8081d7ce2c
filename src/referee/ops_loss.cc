// Losses, in forms that do not overflow: softmax relative to the largest logit, binary cross entropy as
// max(x, 0) - x t + log(1 + exp(-|x|)), and the paths of CTC as logarithms of their probabilities.
// options.deviations are mistakes of ports that causes/ways.h tries; without them the losses are the
// recipe's.

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

// log(exp(a) + exp(b)); NaN where either is.
double log_add(double a, double b) {
  if (a == -INFINITY) return b;
  if (b == -INFINITY) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// A row of ctc in log space, as in A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber, "Connectionist temporal
// classification", ICML 2006, section 4: a path goes through the states blank, l1, blank, l2, ..., blank. From one frame
// to the next it stays, or goes to the next state, or over a blank between different labels.
class Paths {
 public:
  Paths(const double* logits, int64_t frames, int64_t classes, const int64_t* labels, int64_t most)
      : frames_(frames), classes_(classes) {
    for (int64_t i = 0; i < most && labels[i] >= 0; ++i) states_.insert(states_.end(), {0, labels[i]});
    states_.push_back(0);
    for (int64_t t = 0; t < frames; ++t) {
      const double* const row = logits + t * classes;
      const LogSum log(row, classes);
      for (int64_t k = 0; k < classes; ++k) log_p_.push_back(row[k] - log.top - log.log_sum);
    }
    forward();
  }
  int64_t labels() const { return size() / 2; }
  double log_p(int64_t t, int64_t k) const { return log_p_[static_cast<size_t>(t * classes_ + k)]; }
  // log p(labels): of the paths that end in the last label or in the blank behind it.
  double log_total() const {
    const double* const last = before_.data() + (frames_ - 1) * size();
    return size() == 1 ? last[0] : log_add(last[size() - 1], last[size() - 2]);
  }
  // By frame and class: the probability that a path of the labels has the class there.
  std::vector<double> shares() const {
    std::vector<double> found(log_p_.size(), 0.0);
    const double total = log_total();
    std::vector<double> behind(states_.size(), -INFINITY);  // log p of the rest, from a state of frame t
    for (int64_t s = std::max<int64_t>(size() - 2, 0); s < size(); ++s) behind[at(s)] = 0;
    for (int64_t t = frames_; t-- > 0;) {
      for (int64_t s = 0; s < size(); ++s)
        found[static_cast<size_t>(t * classes_) + at(states_[at(s)])] +=
            std::exp(before_[at(t * size() + s)] + behind[at(s)] - total);
      if (t == 0) break;
      std::vector<double> next(states_.size(), -INFINITY);
      for (int64_t s = 0; s < size(); ++s) {
        for (int64_t step = 0; step < reach(s); ++step) {
          double& sum = next[at(s - step)];
          sum = log_add(sum, log_p(t, states_[at(s)]) + behind[at(s)]);
        }
      }
      behind = std::move(next);
    }
    return found;
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  int64_t size() const { return static_cast<int64_t>(states_.size()); }
  // From how many states state s is reached: itself, the one before, the one before that.
  int64_t reach(int64_t s) const {
    if (s < 2) return s + 1;
    return states_[at(s)] != 0 && states_[at(s)] != states_[at(s - 2)] ? 3 : 2;
  }
  void forward() {
    before_.assign(at(frames_ * size()), -INFINITY);
    for (int64_t s = 0; s < std::min<int64_t>(size(), 2); ++s) before_[at(s)] = log_p(0, states_[at(s)]);
    for (int64_t t = 1; t < frames_; ++t) {
      for (int64_t s = 0; s < size(); ++s) {
        double sum = -INFINITY;
        for (int64_t step = 0; step < reach(s); ++step)
          sum = log_add(sum, before_[at((t - 1) * size() + s - step)]);
        before_[at(t * size() + s)] = sum + log_p(t, states_[at(s)]);
      }
    }
  }

  int64_t frames_, classes_;
  std::vector<int64_t> states_;
  std::vector<double> log_p_;   // by frame and class
  std::vector<double> before_;  // by frame and state: log p of the paths up to there
};

Paths paths_of(const NodeContext& c, int64_t row) {
  const Tensor& logits = c.input(0);
  const IntTensor& labels = c.integers(1);
  const int64_t frames = logits.shape[1], classes = logits.shape[2], most = labels.shape[1];
  return {logits.data.data() + row * frames * classes, frames, classes, labels.data.data() + row * most,
          most};
}

// What a row counts for, before the reduction.
double row_weight(const NodeContext& c, const Paths& paths) {
  return c.options.deviations.ctc_by_length ? 1.0 / static_cast<double>(std::max<int64_t>(paths.labels(), 1))
                                            : 1;
}

AnyTensor ctc(const NodeContext& c) {
  const int64_t rows = c.input(0).shape[0];
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const Paths paths = paths_of(c, row);
    sum -= row_weight(c, paths) * paths.log_total();
  }
  return Tensor{{}, {sum * weight(c, static_cast<size_t>(rows))}};
}

// dlogits = (softmax - shares) weight.
void ctc_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  const Shape& shape = c.input(0).shape;
  const double factor = grad.data[0] * weight(c, static_cast<size_t>(shape[0]));
  double* dx = to.inputs[0]->data.data();
  for (int64_t row = 0; row < shape[0]; ++row) {
    const Paths paths = paths_of(c, row);
    const std::vector<double> shares = paths.shares();
    const double scaled = factor * row_weight(c, paths);
    for (size_t i = 0; i < shares.size(); ++i) {
      const auto place = static_cast<int64_t>(i);
      *dx++ += scaled * (std::exp(paths.log_p(place / shape[2], place % shape[2])) - shares[i]);
    }
  }
}

}  // namespace

std::vector<OpFunctions> loss_ops() {
  return {{ir::Op::kSoftmaxCrossEntropy, softmax_cross_entropy, softmax_cross_entropy_backward},
          {ir::Op::kMse, mse, mse_backward},
          {ir::Op::kL1, reduced<absolute>, reduced_backward<absolute_slope, absolute_target_slope>},
          {ir::Op::kBceWithLogits, reduced<binary>, reduced_backward<binary_slope, binary_target_slope>},
          {ir::Op::kCtc, ctc, ctc_backward}};
}

}  // namespace bakeoff::referee
