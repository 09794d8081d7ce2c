// The forward pass against definitions written out index by index.

#include "referee/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/testing.h"
#include "ir/elementwise.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "referee/evaluate.h"
#include "zoo/op_cases.h"

namespace bakeoff::referee {
namespace {

// What a definition needs: the node, its float inputs and its parameters.
struct View {
  const ir::Node& node;
  std::vector<Tensor> inputs;
  std::vector<IntTensor> integers;
  const Weights& weights;
  Shape shape;  // of the output
  const Tensor& param(const char* slot) const { return weights[static_cast<size_t>(node.param(slot))]; }
};

double at(const Tensor& t, const std::vector<int64_t>& index) {
  int64_t place = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) place = place * t.shape[axis] + index[axis];
  return t.data[static_cast<size_t>(place)];
}

using Index = std::vector<int64_t>;

// Calls f(index) for every index of `shape`.
template <typename F>
void each_index(const Shape& shape, const F& f) {
  for (int64_t n = 0; n < tensor::elements(shape); ++n) {
    Index index(shape.size());
    int64_t rest = n;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) index[axis] = rest % shape[axis];
    f(index);
  }
}

// The place in the input that the place `k` of a kernel sees from `i` of the output; empty in the padding.
Index seen(const View& v, const Index& i, const Index& k) {
  const auto &stride = v.node.integers("stride"), &pad = v.node.integers("pad");
  Index from = {i[0], i[1]};
  for (size_t axis = 0; axis < k.size(); ++axis) {
    const int64_t step = v.node.has_attribute("dilation") ? v.node.integers("dilation")[axis] : 1;
    from.push_back(i[axis + 2] * stride[axis] + k[axis] * step - pad[2 * axis]);
    if (from.back() < 0 || from.back() >= v.inputs[0].shape[axis + 2]) return {};
  }
  return from;
}

double conv(const View& v, const Index& i) {
  const Tensor &x = v.inputs[0], &w = v.param("weight");
  const int64_t group = i[1] / (w.shape[0] / v.node.integer("groups"));
  double sum = v.node.has("bias") ? at(v.param("bias"), {i[1]}) : 0;
  each_index(Shape(w.shape.begin() + 2, w.shape.end()), [&](const Index& k) {
    Index from = seen(v, i, k), tap = {i[1], 0};
    if (from.empty()) return;
    tap.insert(tap.end(), k.begin(), k.end());
    for (tap[1] = 0; tap[1] < w.shape[1]; ++tap[1]) {
      from[1] = group * w.shape[1] + tap[1];
      sum += at(x, from) * at(w, tap);
    }
  });
  return sum;
}

// The sum over the places of the input from which a kernel reaches `i`.
double conv_transpose(const View& v, const Index& i) {
  const Tensor &x = v.inputs[0], &w = v.param("weight");
  const auto &stride = v.node.integers("stride"), &pad = v.node.integers("pad");
  const auto& dilation = v.node.integers("dilation");
  const int64_t in = x.shape[1] / v.node.integer("groups");
  double sum = v.node.has("bias") ? at(v.param("bias"), {i[1]}) : 0;
  each_index(Shape(w.shape.begin() + 2, w.shape.end()), [&](const Index& k) {
    Index from = {i[0], i[1] / w.shape[1] * in}, tap = {from[1], i[1] % w.shape[1]};
    for (size_t axis = 0; axis < k.size(); ++axis) {
      const int64_t place = i[axis + 2] + pad[2 * axis] - k[axis] * dilation[axis];
      if (place < 0 || place % stride[axis] != 0 || place / stride[axis] >= x.shape[axis + 2]) return;
      from.push_back(place / stride[axis]);
    }
    tap.insert(tap.end(), k.begin(), k.end());
    for (int64_t c = 0; c < in; ++c, ++from[1], ++tap[0]) sum += at(x, from) * at(w, tap);
  });
  return sum;
}

double pool(const View& v, const Index& i, bool maximum) {
  double sum = 0, top = -std::numeric_limits<double>::infinity(), count = 0;
  each_index(v.node.integers("kernel"), [&](const Index& k) {
    const Index from = seen(v, i, k);
    if (!from.empty()) top = std::max(top, at(v.inputs[0], from)), sum += at(v.inputs[0], from);
    if (!from.empty() || (!maximum && v.node.flag("count_include_pad"))) count += 1;
  });
  return maximum ? top : sum / count;
}

double linear(const View& v, const Index& i) {
  const Tensor& w = v.param("weight");
  double sum = v.node.has("bias") ? at(v.param("bias"), {i.back()}) : 0;
  Index from = i;
  for (from.back() = 0; from.back() < w.shape[1]; ++from.back()) {
    sum += at(v.inputs[0], from) * at(w, {i.back(), from.back()});
  }
  return sum;
}

double global_avg_pool2d(const View& v, const Index& i) {
  double sum = 0;
  const Shape& x = v.inputs[0].shape;
  for (int64_t h = 0; h < x[2]; ++h) {
    for (int64_t w = 0; w < x[3]; ++w) sum += at(v.inputs[0], {i[0], i[1], h, w});
  }
  return sum / static_cast<double>(x[2] * x[3]);
}

// (x - mean) / sqrt(variance + eps) over all elements whose index `same` accepts.
template <typename Same>
double normalised(const View& v, const Index& i, const Same& same) {
  const Tensor& x = v.inputs[0];
  double count = 0, sum = 0, squares = 0;
  each_index(x.shape, [&](const Index& j) {
    if (same(j)) count += 1, sum += at(x, j), squares += at(x, j) * at(x, j);
  });
  const double mean = sum / count;
  return (at(x, i) - mean) / std::sqrt(squares / count - mean * mean + v.node.real("eps"));
}

double batch_norm(const View& v, const Index& i) {
  const double hat = normalised(v, i, [&](const Index& j) { return j[1] == i[1]; });
  return hat * at(v.param("weight"), {i[1]}) + at(v.param("bias"), {i[1]});
}

// Times the weight, plus the bias, where there are such.
double affine(const View& v, double x, const Index& place) {
  if (v.node.has("weight")) x *= at(v.param("weight"), place);
  return v.node.has("bias") ? x + at(v.param("bias"), place) : x;
}

double rms_norm(const View& v, const Index& i) {
  const auto lead = static_cast<std::ptrdiff_t>(i.size()) - v.node.integer("dims");
  double sum = 0, count = 0;
  each_index(v.shape, [&](const Index& j) {
    if (!std::equal(i.begin(), i.begin() + lead, j.begin())) return;
    sum += at(v.inputs[0], j) * at(v.inputs[0], j);
    count += 1;
  });
  return affine(v, at(v.inputs[0], i) / std::sqrt(sum / count + v.node.real("eps")),
                Index(i.begin() + lead, i.end()));
}

double layer_norm(const View& v, const Index& i) {
  const auto lead = static_cast<std::ptrdiff_t>(i.size()) - v.node.integer("dims");
  const double hat =
      normalised(v, i, [&](const Index& j) { return std::equal(i.begin(), i.begin() + lead, j.begin()); });
  return affine(v, hat, Index(i.begin() + lead, i.end()));
}

double softmax(const View& v, const Index& i) {
  const auto axis = static_cast<size_t>(v.node.integer("axis"));
  double sum = 0;
  Index j = i;
  for (j[axis] = 0; j[axis] < v.shape[axis]; ++j[axis]) sum += std::exp(at(v.inputs[0], j));
  return std::exp(at(v.inputs[0], i)) / sum;
}

double embedding(const View& v, const Index& i) {
  const IntTensor& ids = v.integers[0];
  int64_t place = 0;
  for (size_t axis = 0; axis < ids.shape.size(); ++axis) place = place * ids.shape[axis] + i[axis];
  return at(v.param("weight"), {ids.data[static_cast<size_t>(place)], i.back()});
}

double gelu(const View& v, const Index& i) {
  const double x = at(v.inputs[0], i);
  if (v.node.word("form") == "erf") return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
  return x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * std::pow(x, 3)))) / 2;
}

double transposed(const View& v, const Index& i) {
  Index from(i.size());
  for (size_t axis = 0; axis < i.size(); ++axis)
    from[static_cast<size_t>(v.node.integers("perm")[axis])] = i[axis];
  return at(v.inputs[0], from);
}

double padded(const View& v, const Index& i) {
  Index from = i;
  for (size_t axis = 1; axis < i.size(); ++axis) {
    from[axis] -= v.node.integers("pad")[2 * axis - 2];
    if (from[axis] < 0 || from[axis] >= v.inputs[0].shape[axis]) return v.node.real("value");
  }
  return at(v.inputs[0], from);
}

double concat(const View& v, const Index& i) {
  const auto axis = static_cast<size_t>(v.node.integer("axis"));
  Index from = i;
  size_t input = 0;
  while (from[axis] >= v.inputs[input].shape[axis]) from[axis] -= v.inputs[input++].shape[axis];
  return at(v.inputs[input], from);
}

double joined(const View& v, const Index& i) {
  int64_t place = i[1];
  for (const Tensor& x : v.inputs) {
    const int64_t width = static_cast<int64_t>(x.data.size()) / x.shape[0];
    if (place < width) return x.data[static_cast<size_t>(i[0] * width + place)];
    place -= width;
  }
  return 0;
}

// The element of an operand that stands at a place of the output.
double operand(const Tensor& x, Index i) {
  if (x.shape.empty()) return x.data[0];
  for (size_t axis = 0; axis < i.size(); ++axis) {
    if (x.shape[axis] == 1) i[axis] = 0;
  }
  return at(x, i);
}
double operand(const View& v, size_t k, const Index& i) { return operand(v.inputs[k], i); }
double operand(const IntTensor& x, const Index& i) {
  return operand(Tensor{x.shape, {x.data.begin(), x.data.end()}}, i);
}

double same_place(const View& v, const Index& i) {
  int64_t place = 0;
  for (size_t axis = 0; axis < i.size(); ++axis) place = place * v.shape[axis] + i[axis];
  return v.inputs[0].data[static_cast<size_t>(place)];
}

double lrn(const View& v, const Index& i) {
  double sum = 0;
  for (int64_t n = 0; n < v.node.integer("size"); ++n) {
    Index j = i;
    j[1] += n - v.node.integer("size") / 2;
    if (j[1] >= 0 && j[1] < v.shape[1]) sum += std::pow(at(v.inputs[0], j), 2);
  }
  return at(v.inputs[0], i) / std::pow(v.node.real("k") + v.node.real("alpha") * sum, v.node.real("beta"));
}

double attention(const View& v, const Index& i) {
  const Tensor &q = v.inputs[0], &k = v.inputs[1];
  const int64_t key_head = i[2] / (q.shape[2] / k.shape[2]);
  double total = 0, sum = 0;
  for (int64_t s = 0; s < k.shape[1]; ++s) {
    if (v.node.flag("causal") && s > i[1]) continue;
    if (v.node.integer("window") > 0 && s <= i[1] - v.node.integer("window")) continue;
    if (!v.integers.empty() && s > v.integers[0].data[static_cast<size_t>(i[0])]) continue;
    double score = 0;
    for (int64_t d = 0; d < q.shape[3]; ++d) {
      score += at(q, {i[0], i[1], i[2], d}) * at(k, {i[0], s, key_head, d});
    }
    const double weight = std::exp(score / std::sqrt(static_cast<double>(q.shape[3])));
    total += weight;
    sum += weight * at(v.inputs[2], {i[0], s, key_head, i[3]});
  }
  return sum / total;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// What a vector gives to the gates: bias and rows of the weight.
std::vector<double> gate_sums(const View& v, const char* weight, const char* bias,
                              const std::vector<double>& from) {
  const Tensor& w = v.param(weight);
  std::vector<double> sums(static_cast<size_t>(w.shape[0]));
  for (size_t gate = 0; gate < sums.size(); ++gate) {
    const auto row = static_cast<int64_t>(gate);
    if (v.node.has(bias)) sums[gate] = at(v.param(bias), {row});
    for (size_t f = 0; f < from.size(); ++f) sums[gate] += at(w, {row, static_cast<int64_t>(f)}) * from[f];
  }
  return sums;
}

double recurrent(const View& v, const Index& i) {
  const auto units = static_cast<size_t>(v.shape[2]);
  const bool reverse = v.node.flag("reverse"), gru = v.node.op == ir::Op::kGru;
  std::vector<double> hidden(units, 0), cell(units, 0);
  for (int64_t step = 0; step < v.shape[1]; ++step) {
    const int64_t t = reverse ? v.shape[1] - 1 - step : step;
    std::vector<double> x;
    for (int64_t f = 0; f < v.inputs[0].shape[2]; ++f) x.push_back(at(v.inputs[0], {i[0], t, f}));
    const auto a = gate_sums(v, "weight_ih", gru ? "bias_ih" : "bias", x);
    const auto b = gate_sums(v, "weight_hh", gru ? "bias_hh" : "none", hidden);
    for (size_t u = 0; u < units; ++u) {
      const auto sum = [&](size_t gate) { return a[gate * units + u] + b[gate * units + u]; };
      if (gru) {
        const double z = sigmoid(sum(1));
        const double n = std::tanh(a[2 * units + u] + sigmoid(sum(0)) * b[2 * units + u]);
        hidden[u] = (1 - z) * n + z * hidden[u];
      } else {
        cell[u] = sigmoid(sum(1)) * cell[u] + sigmoid(sum(0)) * std::tanh(sum(2));
        hidden[u] = sigmoid(sum(3)) * std::tanh(cell[u]);
      }
    }
    if (t == i[1]) break;
  }
  return hidden[static_cast<size_t>(i[2])];
}

double reduced(const View& v, const Index& i) {
  const Tensor& x = v.inputs[0];
  const auto axes = v.node.reduced_axes();
  const auto goes = [&](size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
  };
  std::vector<double> all;
  each_index(x.shape, [&](const Index& j) {
    size_t out = 0;
    bool mine = true;
    for (size_t axis = 0; axis < j.size(); ++axis) {
      if (!goes(axis)) mine = mine && j[axis] == i[out];
      if (!goes(axis) || v.node.flag("keepdims")) ++out;
    }
    if (mine) all.push_back(at(x, j));
  });
  double sum = 0, exps = 0, product = 1;
  for (const double value : all) sum += value, exps += std::exp(value), product *= value;
  if (v.node.op == ir::Op::kProd) return product;
  if (v.node.op == ir::Op::kSum) return sum;
  if (v.node.op == ir::Op::kMean) return sum / static_cast<double>(all.size());
  if (v.node.op == ir::Op::kLogsumexp) return std::log(exps);
  return v.node.op == ir::Op::kMax ? *std::max_element(all.begin(), all.end())
                                   : *std::min_element(all.begin(), all.end());
}

double along_axis(const View& v, const Index& i) {
  const auto axis = static_cast<size_t>(v.node.integer("axis"));
  Index j = i;
  double before = 0, exps = 0;
  for (j[axis] = 0; j[axis] < v.shape[axis]; ++j[axis]) {
    if (j[axis] <= i[axis]) before += at(v.inputs[0], j);
    exps += std::exp(at(v.inputs[0], j));
  }
  return v.node.op == ir::Op::kCumsum ? before : at(v.inputs[0], i) - std::log(exps);
}

double sliced(const View& v, Index i) {
  int64_t& place = i[static_cast<size_t>(v.node.integer("axis"))];
  place = v.node.integer("begin") + place * v.node.integer("step");
  return at(v.inputs[0], i);
}

double flipped(const View& v, Index i) {
  for (const int64_t axis : v.node.integers("axes")) {
    const auto a = static_cast<size_t>(axis);
    i[a] = v.shape[a] - 1 - i[a];
  }
  return at(v.inputs[0], i);
}

double product(const View& v, const Index& i) {
  Index a = i, b = i;
  const size_t rank = i.size();
  double sum = 0;
  for (int64_t k = 0; k < v.inputs[0].shape.back(); ++k) {
    a[rank - 1] = b[rank - 2] = k;
    for (size_t axis = 0; axis + 2 < rank; ++axis) {
      a[axis] = std::min(i[axis], v.inputs[0].shape[axis] - 1);
      b[axis] = std::min(i[axis], v.inputs[1].shape[axis] - 1);
    }
    sum += at(v.inputs[0], a) * at(v.inputs[1], b);
  }
  return sum;
}

// The table's formula of the operands at this place. The formulas themselves are compared with every framework.
double elementwise(const View& v, const Index& i) {
  const ir::Elementwise* row = ir::find_elementwise(v.node.op);
  if (row == nullptr) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> x;
  for (size_t n = 0; n < row->inputs; ++n) x.push_back(operand(v, n, i));
  return row->value(x.data(), ir::reals(v.node).data());
}

double loss(const View& v, bool cross_entropy) {
  double sum = 0, count = 0;
  int64_t place = 0;
  each_index(cross_entropy ? v.integers[0].shape : v.inputs[0].shape, [&](Index i) {
    count += 1;
    if (cross_entropy && v.integers[0].data[static_cast<size_t>(place++)] == ir::ignore_index(v.node)) {
      count -= 1;
      return;
    }
    if (!cross_entropy) {
      const double x = at(v.inputs[0], i), t = at(v.inputs[1], i);
      if (v.node.op == ir::Op::kMse) sum += (x - t) * (x - t);
      if (v.node.op == ir::Op::kL1) sum += std::abs(x - t);
      if (v.node.op == ir::Op::kBceWithLogits)
        sum -= t * std::log(1 / (1 + std::exp(-x))) + (1 - t) * std::log(1 / (1 + std::exp(x)));
      return;
    }
    const auto row = static_cast<size_t>(place) - 1;
    double total = 0;
    const int64_t classes = v.inputs[0].shape.back();
    const double smooth = v.node.real("label_smoothing");
    i.push_back(0);
    for (i.back() = 0; i.back() < classes; ++i.back()) total += std::exp(at(v.inputs[0], i));
    for (i.back() = 0; i.back() < classes; ++i.back()) {
      const bool label = i.back() == v.integers[0].data[row];
      const double target = (label ? 1 - smooth : 0) + smooth / static_cast<double>(classes);
      sum -= target * (at(v.inputs[0], i) - std::log(total));
    }
  });
  return v.node.word("reduction") == "sum" ? sum : sum / std::max(count, 1.0);
}

// What a path of classes says: repeats merged, then blanks removed.
Index said(const Index& path) {
  Index labels;
  for (size_t t = 0; t < path.size(); ++t) {
    if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  }
  return labels;
}

// The sum over all paths, one by one.
double ctc(const View& v) {
  const Shape& shape = v.inputs[0].shape;
  double sum = 0;
  for (int64_t row = 0; row < shape[0]; ++row) {
    Index labels;
    for (int64_t i = 0; i < v.integers[0].shape[1]; ++i) {
      labels.push_back(v.integers[0].data[static_cast<size_t>(row * v.integers[0].shape[1] + i)]);
      if (labels.back() == -1) labels.pop_back();
    }
    double p = 0;
    each_index(Shape(static_cast<size_t>(shape[1]), shape[2]), [&](const Index& path) {
      if (said(path) != labels) return;
      double product = 1;
      for (int64_t t = 0; t < shape[1]; ++t) {
        double total = 0;
        for (int64_t k = 0; k < shape[2]; ++k) total += std::exp(at(v.inputs[0], {row, t, k}));
        product *= std::exp(at(v.inputs[0], {row, t, path[static_cast<size_t>(t)]})) / total;
      }
      p += product;
    });
    sum -= std::log(p);
  }
  return v.node.word("reduction") == "sum" ? sum : sum / static_cast<double>(shape[0]);
}

double taken(const View& v, const Index& i) {
  Index from = i;
  int64_t& place = from[static_cast<size_t>(v.node.integer("axis"))];
  place = v.integers[0].data[static_cast<size_t>(place)];
  return at(v.inputs[0], from);
}

// The place in row-major order that the places have at i, without its axes from `axis` on, and e.
int64_t placed(const View& v, const Index& i, int64_t e) {
  const auto axis = static_cast<size_t>(v.node.integer("axis"));
  const IntTensor& places = v.integers[0];
  int64_t at = 0;
  for (size_t d = 0; d < axis; ++d) at = at * places.shape[d] + i[d];
  return places.data[static_cast<size_t>(at * places.shape[axis] + e)];
}

double gathered(const View& v, const Index& i) {
  Index from = i;
  int64_t& place = from[static_cast<size_t>(v.node.integer("axis"))];
  place = placed(v, i, place);
  return at(v.inputs[0], from);
}

double scattered(const View& v, const Index& i) {
  const auto axis = static_cast<size_t>(v.node.integer("axis"));
  double sum = 0;
  Index from = i;
  for (from[axis] = 0; from[axis] < v.inputs[0].shape[axis]; ++from[axis])
    if (placed(v, i, from[axis]) == i[axis]) sum += at(v.inputs[0], from);
  return sum;
}

double group_norm(const View& v, const Index& i) {
  const int64_t size = v.shape[1] / v.node.integer("groups");
  const double hat =
      normalised(v, i, [&](const Index& j) { return j[0] == i[0] && j[1] / size == i[1] / size; });
  return affine(v, hat, {i[1]});
}

// Where place i of an axis of `n` lies among `size` places, and the two places around it with their weights.
double resized(const View& v, const Index& i, size_t axis = 2, Index from = {}) {
  if (axis == i.size()) {
    from.insert(from.begin(), {i[0], i[1]});
    return at(v.inputs[0], from);
  }
  const auto size = v.inputs[0].shape[axis], n = v.shape[axis];
  const std::string &mode = v.node.word("mode"), &coordinates = v.node.word("coordinates");
  const auto real = [](int64_t k) { return static_cast<double>(k); };
  const auto further = [&](double place) {
    Index all = from;
    all.push_back(std::clamp<int64_t>(static_cast<int64_t>(place), 0, size - 1));
    return resized(v, i, axis + 1, all);
  };
  if (mode == "nearest")
    return further(real(((coordinates == "half_pixel" ? 2 * i[axis] + 1 : 2 * i[axis]) * size) / (2 * n)));
  double place = coordinates == "half_pixel"   ? (real(i[axis]) + 0.5) * real(size) / real(n) - 0.5
                 : coordinates == "asymmetric" ? real(i[axis]) * real(size) / real(n)
                 : n == 1                      ? 0
                                               : real(i[axis]) * real(size - 1) / real(n - 1);
  place = std::clamp(place, 0.0, real(size - 1));
  const double low = std::floor(place);
  return (1 - place + low) * further(low) + (place - low) * further(low + 1);
}

double over_axes(const View& v, const Index& i) {
  switch (v.node.op) {
    case ir::Op::kSum:
    case ir::Op::kMean:
    case ir::Op::kMax:
    case ir::Op::kMin:
    case ir::Op::kLogsumexp:
    case ir::Op::kProd:
      return reduced(v, i);
    case ir::Op::kCumsum:
    case ir::Op::kLogSoftmax:
      return along_axis(v, i);
    case ir::Op::kSlice:
      return sliced(v, i);
    case ir::Op::kFlip:
      return flipped(v, i);
    case ir::Op::kExpand:
      return operand(v, 0, i);
    case ir::Op::kMatmul:
      return product(v, i);
    case ir::Op::kConstant:
      return v.node.real("value");
    case ir::Op::kParameter:
      return at(v.param("weight"), i);
    case ir::Op::kWhere:
      return operand(v.integers[0], i) != 0 ? operand(v, 0, i) : operand(v, 1, i);
    case ir::Op::kTake:
      return taken(v, i);
    case ir::Op::kGather:
      return gathered(v, i);
    case ir::Op::kScatterAdd:
      return scattered(v, i);
    case ir::Op::kStopGradient:
      return operand(v, 0, i);
    case ir::Op::kGroupNorm:
      return group_norm(v, i);
    case ir::Op::kResize:
      return resized(v, i);
    default:
      return elementwise(v, i);
  }
}

double of_network(const View& v, const Index& i) {
  switch (v.node.op) {
    case ir::Op::kMaxPool1d:
    case ir::Op::kMaxPool2d:
    case ir::Op::kMaxPool3d:
      return pool(v, i, true);
    case ir::Op::kAvgPool1d:
    case ir::Op::kAvgPool2d:
    case ir::Op::kAvgPool3d:
      return pool(v, i, false);
    case ir::Op::kGlobalAvgPool2d:
      return global_avg_pool2d(v, i);
    case ir::Op::kFlatten:
    case ir::Op::kReshape:
      return same_place(v, i);
    case ir::Op::kTranspose:
      return transposed(v, i);
    case ir::Op::kPad:
      return padded(v, i);
    case ir::Op::kConcat:
      return concat(v, i);
    case ir::Op::kJoin:
      return joined(v, i);
    case ir::Op::kAdd:
      return operand(v, 0, i) + operand(v, 1, i);
    case ir::Op::kMul:
      return operand(v, 0, i) * operand(v, 1, i);
    case ir::Op::kLrn:
      return lrn(v, i);
    case ir::Op::kPositionEmbedding:
      return at(v.inputs[0], i) + at(v.param("weight"), {i[1], i[2]});
    case ir::Op::kAttention:
      return attention(v, i);
    case ir::Op::kLstm:
    case ir::Op::kGru:
      return recurrent(v, i);
    case ir::Op::kSoftmaxCrossEntropy:
      return loss(v, true);
    case ir::Op::kMse:
    case ir::Op::kL1:
    case ir::Op::kBceWithLogits:
      return loss(v, false);
    case ir::Op::kCtc:
      return ctc(v);
    default:
      return over_axes(v, i);
  }
}

double defined(const View& v, const Index& i) {
  switch (v.node.op) {
    case ir::Op::kConv1d:
    case ir::Op::kConv2d:
    case ir::Op::kConv3d:
      return conv(v, i);
    case ir::Op::kConvTranspose1d:
    case ir::Op::kConvTranspose2d:
    case ir::Op::kConvTranspose3d:
      return conv_transpose(v, i);
    case ir::Op::kLinear:
      return linear(v, i);
    case ir::Op::kBatchNorm:
      return batch_norm(v, i);
    case ir::Op::kLayerNorm:
      return layer_norm(v, i);
    case ir::Op::kRmsNorm:
      return rms_norm(v, i);
    case ir::Op::kEmbedding:
      return embedding(v, i);
    case ir::Op::kDropout:
      return at(v.inputs[0], i);  // off
    case ir::Op::kRelu:
      return std::max(at(v.inputs[0], i), 0.0);
    case ir::Op::kGelu:
      return gelu(v, i);
    case ir::Op::kSigmoid:
      return 1 / (1 + std::exp(-at(v.inputs[0], i)));
    case ir::Op::kTanh:
      return 1 - 2 / (std::exp(2 * at(v.inputs[0], i)) + 1);
    case ir::Op::kSoftmax:
      return softmax(v, i);
    default:
      return of_network(v, i);
  }
}

// Nothing is larger, and what stands before is smaller.
void check_argmax(const View& v, const IntTensor& places) {
  const auto axis = static_cast<size_t>(v.node.integer("axis"));
  const Tensor& x = v.inputs[0];
  size_t result = 0;
  each_index(places.shape, [&](const Index& i) {
    Index j = i;
    j.insert(j.begin() + static_cast<std::ptrdiff_t>(axis), places.data[result]);
    const double top = at(x, j);
    for (j[axis] = 0; j[axis] < x.shape[axis]; ++j[axis]) {
      ASSERT_LE(at(x, j), top);
      ASSERT_TRUE(at(x, j) < top || j[axis] >= places.data[result]);
    }
    ++result;
  });
}

void check_node(const ir::Workload& workload, size_t n, const Evaluation& e, const Weights& weights) {
  View view{.node = workload.nodes[n], .inputs = {}, .integers = {}, .weights = weights, .shape = {}};
  for (const ir::ValueId id : view.node.inputs) {
    const AnyTensor& value = e.activations[static_cast<size_t>(id)];
    if (const auto* x = std::get_if<Tensor>(&value)) view.inputs.push_back(*x);
    if (const auto* x = std::get_if<IntTensor>(&value)) view.integers.push_back(*x);
  }
  const AnyTensor& output = e.activations[static_cast<size_t>(workload.output_of(static_cast<int>(n)))];
  if (view.node.op == ir::Op::kArgmax) return check_argmax(view, std::get<IntTensor>(output));
  if (std::holds_alternative<IntTensor>(output)) return;  // seen through the embedding or choice that follows
  view.shape = tensor::shape_of(output);
  each_index(view.shape, [&](const Index& i) {
    const double wanted = defined(view, i);
    ASSERT_NEAR(at(std::get<Tensor>(output), i), wanted, 1e-10 * (1 + std::abs(wanted)));
  });
}

class Definition : public ::testing::TestWithParam<std::string> {};

TEST_P(Definition, IsWhatTheRefereeComputes) {
  for (uint64_t seed = 0; seed < testing::random_cases(60); ++seed) {
    tensor::Rng rng(seed, GetParam() + "/forward");
    const auto workload = zoo::random_case(ir::find_op(GetParam())->op, rng);
    SCOPED_TRACE(ir::dump(workload));
    const auto weights = zoo::random_weights(workload, rng);
    const auto e = evaluate(workload, weights, zoo::random_inputs(workload, rng.integer(3, 5), rng),
                            {.gradients = false, .activations = true});
    ASSERT_TRUE(e) << e.error().text();
    for (size_t n = 0; n < workload.nodes.size() && !HasFatalFailure(); ++n)
      check_node(workload, n, *e, weights);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Definition, ::testing::ValuesIn(ir::op_names()),
                         [](const auto& row) { return row.param; });

TEST(Prod, GradientIsRightWhereElementsAre0) {
  const auto w = *ir::parse(
      "workload w(x: f32[N,3], t: f32[N,1]) {\n p = parameter(; weight=p[1,3])\n a = mul(x, p)\n"
      " y = prod(a) axis=1 keepdims=true\n loss = mse(y, t) reduction=sum\n}");
  // (2 p)(3 q)(5 r): beside one 0 the others multiply, beside two nothing is left.
  const auto e = evaluate(w, {{{1, 3}, {0, 1, 1}}}, {Tensor{{1, 3}, {2, 3, 5}}, Tensor{{1, 1}, {-0.5}}});
  ASSERT_TRUE(e);
  EXPECT_EQ(e->gradients[0].data, (std::vector<double>{30, 0, 0}));
  const auto two = evaluate(w, {{{1, 3}, {0, 1, 0}}}, {Tensor{{1, 3}, {2, 3, 5}}, Tensor{{1, 1}, {-0.5}}});
  ASSERT_TRUE(two);
  EXPECT_EQ(two->gradients[0].data, (std::vector<double>{0, 0, 0}));
}

TEST(StopGradient, LetsNoGradientThrough) {
  const auto w = *ir::parse(
      "workload w(x: f32[N,1], t: f32[N,1]) {\n c = linear(x; weight=c.w[1,1])\n s = stop_gradient(c)\n"
      " h = mul(c, s)\n loss = mse(h, t) reduction=sum\n}");
  const auto e = evaluate(w, {{{1, 1}, {3}}}, {Tensor{{1, 1}, {2}}, tensor::zeros({1, 1})});
  ASSERT_TRUE(e);
  EXPECT_DOUBLE_EQ(e->prediction.data[0], 36);
  EXPECT_DOUBLE_EQ(e->gradients[0].data[0], 2 * 36 * 6 * 2);  // not twice that
}

TEST(MaxPool, GivesTheGradientOfATieToTheFirst) {
  const auto w = *ir::parse(
      "workload w(x: f32[N,1,1,1], t: f32[N,1]) {\n c = conv2d(x; weight=c.w[1,1,1,1], bias=c.b[1]) "
      "pad=0,1,0,0\n"
      " p = pad(c) pad=0,0,0,0,0,1 value=2.0\n h = max_pool2d(p) kernel=1,2 stride=2,1\n f = flatten(h)\n"
      " loss = mse(f, t)\n}");
  // Row 0 of p is (2 from the convolution, 2 from the padding): the first in row-major order takes the
  // gradient.
  const auto e =
      evaluate(w, {{{1, 1, 1, 1}, {1}}, {{1}, {0}}}, {Tensor{{1, 1, 1, 1}, {2}}, tensor::zeros({1, 1})});
  ASSERT_TRUE(e);
  EXPECT_DOUBLE_EQ(e->gradients[0].data[0], 2 * 2 * 2);
}

}  // namespace
}  // namespace bakeoff::referee
