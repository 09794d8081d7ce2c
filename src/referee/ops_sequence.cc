// Attention, LSTM, GRU and position embedding.
//
// Loops over elements would take minutes for a network of some size, so these are matrix products
// (referee/gemm.h) over offset tables. A head of attention is a matrix inside N,T,heads,D whose rows lie
// `heads * D` apart, and no copy is made of it. All inputs of an LSTM meet weight_ih in one product before
// the recurrence begins; a step then needs only the product with weight_hh, over rows of several sequences at
// a time.
//
// Threads share rows of the batch, or blocks of a gradient's rows, so each place is written by one thread and
// sums have one order: the referee's numbers must not depend on the number of threads. Heads that share keys
// (grouped heads) are one piece for that reason.

#include <algorithm>
#include <cmath>

#include "referee/gemm.h"
#include "referee/ops.h"
#include "referee/parallel.h"

namespace bakeoff::referee {
namespace {

using Offsets = std::vector<int64_t>;

// ---- position_embedding

AnyTensor position_embedding(const NodeContext& c) {
  Tensor y = c.input(0);
  const double* const table = c.param("weight")->data.data();
  const auto sequence = static_cast<size_t>(c.shape[1] * c.shape[2]);
  for (size_t i = 0; i < y.data.size(); ++i) y.data[i] += table[i % sequence];
  return y;
}

void position_embedding_backward(const NodeContext& c, const Tensor&, const Tensor& grad,
                                 const Gradients& to) {
  Tensor* const table = to.param(c.node, "weight");
  const auto sequence = static_cast<size_t>(c.shape[1] * c.shape[2]);
  for (size_t i = 0; table != nullptr && i < grad.data.size(); ++i) table->data[i % sequence] += grad.data[i];
  if (to.inputs[0] == nullptr) return;
  for (size_t i = 0; i < grad.data.size(); ++i) to.inputs[0]->data[i] += grad.data[i];
}

// ---- attention

// Sizes and address tables of the matrices of one head of one row of the batch.
struct Heads {
  int64_t queries, keys, heads, groups, width;
  double scale;
  bool causal;
  int64_t window;         // 0: none
  const IntTensor* last;  // null: no padding
  Offsets query_rows, key_rows, score_rows, ones;

  explicit Heads(const NodeContext& c)
      : queries(c.shape[1]),
        keys(c.input(1).shape[1]),
        heads(c.shape[2]),
        groups(c.input(1).shape[2]),
        width(c.shape[3]),
        scale(c.options.deviations.attention_scale / std::sqrt(static_cast<double>(width))),
        causal(c.node.flag("causal")),
        window(c.node.integer("window")),
        last(c.inputs.size() == 4 ? &c.integers(3) : nullptr),
        query_rows(strided(queries, heads * width)),
        key_rows(strided(keys, groups * width)),
        score_rows(strided(queries, keys)),
        ones(strided(std::max(keys, width), 1)) {}

  // Both masks leave the first keys of a query: how many.
  int64_t visible(int64_t row, int64_t query) const {
    int64_t count = causal ? query + 1 : keys;
    if (last != nullptr) count = std::min(count, last->data[static_cast<size_t>(row)] + 1);
    return count;
  }
  int64_t first_visible(int64_t query) const {
    return window > 0 ? std::max<int64_t>(0, query + 1 - window) : 0;
  }
  int64_t first_query(int64_t row, int64_t head) const { return (row * queries * heads + head) * width; }
  int64_t first_key(int64_t row, int64_t head) const {
    return (row * keys * groups + head / (heads / groups)) * width;
  }
  int64_t scores() const { return queries * keys; }

  // visit(row, head, row * heads + head) for every head of every row. Heads that read the same keys, and
  // add to the same gradients, are one piece.
  template <typename Visit>
  void each(const NodeContext& c, const Visit& visit) const {
    const int64_t all = c.shape[0] * heads, together = heads / groups;
    const int threads = threads_for(2 * all * scores() * width, c.options.threads);
    for_each_piece(c.shape[0] * groups, threads, [&](int64_t piece) {
      for (int64_t i = piece * together; i < (piece + 1) * together; ++i) visit(i / heads, i % heads, i);
    });
  }
  Operand by_row(const double* data, const Offsets& rows) const { return {data, rows.data(), ones.data()}; }
  Operand by_column(const double* data, const Offsets& rows) const {
    return {data, ones.data(), rows.data()};
  }
  Target sum_by_row(double* data, const Offsets& rows) const { return {data, rows.data(), ones.data()}; }
};

// Scores q k^T become weights: scaled, masked, normalised over the visible keys.
void soften(const Heads& h, int64_t row, double* scores) {
  for (int64_t t = 0; t < h.queries; ++t) {
    double* const line = scores + t * h.keys;
    const int64_t first = h.first_visible(t), count = h.visible(row, t);
    const double top = *std::max_element(line + first, line + count);
    double sum = 0;
    for (int64_t s = first; s < count; ++s) sum += line[s] = std::exp((line[s] - top) * h.scale);
    for (int64_t s = first; s < count; ++s) line[s] /= sum;
    std::fill(line, line + first, 0.0);
    std::fill(line + count, line + h.keys, 0.0);
  }
}

// Weights of one head of one row, or their gradients, after dropout.
void drop(const NodeContext& c, const Heads& h, int64_t piece, double* weights) {
  const double rate = c.node.real("rate");
  for (int64_t i = 0; rate > 0 && i < h.scores(); ++i)
    weights[i] *= dropout_factor(c, static_cast<uint64_t>(piece * h.scores() + i), rate);
}

// Keeps the weights of every row and head for backward, as they were before dropout.
AnyTensor attention(const NodeContext& c) {
  const Heads h(c);
  Tensor y = c.make();
  c.saved.reals.assign(static_cast<size_t>(c.shape[0] * h.heads * h.scores()), 0.0);
  h.each(c, [&](int64_t row, int64_t head, int64_t piece) {
    double* const weights = c.saved.reals.data() + piece * h.scores();
    const int64_t at_query = h.first_query(row, head), at_key = h.first_key(row, head);
    gemm(h.queries, h.keys, h.width, h.by_row(c.input(0).data.data() + at_query, h.query_rows),
         h.by_column(c.input(1).data.data() + at_key, h.key_rows), h.sum_by_row(weights, h.score_rows));
    soften(h, row, weights);
    std::vector<double> dropped(weights, weights + h.scores());
    drop(c, h, piece, dropped.data());
    gemm(h.queries, h.width, h.keys, h.by_row(dropped.data(), h.score_rows),
         h.by_row(c.input(2).data.data() + at_key, h.key_rows),
         h.sum_by_row(y.data.data() + at_query, h.query_rows));
  });
  return y;
}

// With weights P, of which dropout keeps M P, and output gradient G: dv = (M P)^T G, dP = M G v^T,
// dS = P (dP - sum dP P) / sqrt D, dq = dS k, dk = dS^T q.
void attention_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  const Heads h(c);
  h.each(c, [&](int64_t row, int64_t head, int64_t piece) {
    const double* const weights = c.saved.reals.data() + piece * h.scores();
    const int64_t at_query = h.first_query(row, head), at_key = h.first_key(row, head);
    const double* const g = grad.data.data() + at_query;
    if (to.inputs[2] != nullptr) {
      std::vector<double> dropped(weights, weights + h.scores());
      drop(c, h, piece, dropped.data());
      gemm(h.keys, h.width, h.queries, h.by_column(dropped.data(), h.score_rows), h.by_row(g, h.query_rows),
           h.sum_by_row(to.inputs[2]->data.data() + at_key, h.key_rows));
    }
    std::vector<double> scores(static_cast<size_t>(h.scores()), 0.0);
    gemm(h.queries, h.keys, h.width, h.by_row(g, h.query_rows),
         h.by_column(c.input(2).data.data() + at_key, h.key_rows), h.sum_by_row(scores.data(), h.score_rows));
    drop(c, h, piece, scores.data());
    for (int64_t t = 0; t < h.queries; ++t) {
      double* const line = scores.data() + t * h.keys;
      const double* const p = weights + t * h.keys;
      double sum = 0;
      for (int64_t s = 0; s < h.keys; ++s) sum += line[s] * p[s];
      for (int64_t s = 0; s < h.keys; ++s) line[s] = p[s] * (line[s] - sum) * h.scale;
    }
    if (to.inputs[0] != nullptr) {
      gemm(h.queries, h.width, h.keys, h.by_row(scores.data(), h.score_rows),
           h.by_row(c.input(1).data.data() + at_key, h.key_rows),
           h.sum_by_row(to.inputs[0]->data.data() + at_query, h.query_rows));
    }
    if (to.inputs[1] != nullptr) {
      gemm(h.keys, h.width, h.queries, h.by_column(scores.data(), h.score_rows),
           h.by_row(c.input(0).data.data() + at_query, h.query_rows),
           h.sum_by_row(to.inputs[1]->data.data() + at_key, h.key_rows));
    }
  });
}

// ---- lstm

constexpr int64_t kRowGrain = 8;     // sequences of one piece
constexpr int64_t kGateGrain = 64;   // rows of a weight gradient of one piece
constexpr int64_t kPlaceGrain = 64;  // places of an input gradient of one piece

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Sizes and address tables. Kept for backward: the gates of every place, then of an LSTM the cells of every
// place, of a GRU what the state gives to n.
struct Cells {
  int64_t batch, length, inputs, units, gates;
  bool reverse;
  Offsets x_rows, gate_rows, h_rows, ih_rows, hh_rows, ones;

  Cells(const NodeContext& c, int64_t kinds)
      : batch(c.shape[0]),
        length(c.shape[1]),
        inputs(c.input(0).shape[2]),
        units(c.shape[2]),
        gates(kinds * units),
        reverse(c.node.flag("reverse")),
        x_rows(strided(places(), inputs)),
        gate_rows(strided(places(), gates)),
        h_rows(strided(places(), units)),
        ih_rows(strided(gates, inputs)),
        hh_rows(strided(gates, units)),
        ones(strided(std::max(gates, inputs), 1)) {}

  int64_t places() const { return batch * length; }
  // Where sequence n is at step t.
  int64_t place(int64_t n, int64_t t) const { return n * length + (reverse ? length - 1 - t : t); }
  int threads(const NodeContext& c) const {
    return threads_for(places() * gates * (inputs + units), c.options.threads);
  }
  // Rows of step t of the sequences from `begin` on, in a table of all places.
  Offsets at(const Offsets& rows, int64_t begin, int64_t end, int64_t t) const {
    Offsets picked;
    for (int64_t n = begin; n < end; ++n) picked.push_back(rows[static_cast<size_t>(place(n, t))]);
    return picked;
  }
};

// One place: from the sums in `gates` and the cell before (null: zero) to gates, cell and hidden state.
void step_forward(int64_t units, double* gates, const double* before, double* cell, double* hidden) {
  for (int64_t u = 0; u < units; ++u) {
    double &i = gates[u], &f = gates[units + u], &g = gates[2 * units + u], &o = gates[3 * units + u];
    i = sigmoid(i);
    f = sigmoid(f);
    g = std::tanh(g);
    o = sigmoid(o);
    cell[u] = i * g + (before == nullptr ? 0 : f * before[u]);
    hidden[u] = o * std::tanh(cell[u]);
  }
}

AnyTensor lstm(const NodeContext& c) {
  const Cells s(c, 4);
  const Tensor* const bias = c.param("bias");
  Tensor y = c.make();
  c.saved.reals.assign(static_cast<size_t>(s.places() * (s.gates + s.units)), 0.0);
  double* const gates = c.saved.reals.data();
  double* const cells = gates + s.places() * s.gates;
  for_each_range(s.batch, kRowGrain, s.threads(c), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin * s.length; bias != nullptr && p < end * s.length; ++p) {
      std::copy(bias->data.begin(), bias->data.end(), gates + p * s.gates);
    }
    gemm((end - begin) * s.length, s.gates, s.inputs,
         {c.input(0).data.data(), s.x_rows.data() + begin * s.length, s.ones.data()},
         {c.param("weight_ih")->data.data(), s.ones.data(), s.ih_rows.data()},
         {gates, s.gate_rows.data() + begin * s.length, s.ones.data()});
    for (int64_t t = 0; t < s.length; ++t) {
      if (t > 0) {
        const Offsets before = s.at(s.h_rows, begin, end, t - 1), now = s.at(s.gate_rows, begin, end, t);
        gemm(end - begin, s.gates, s.units, {y.data.data(), before.data(), s.ones.data()},
             {c.param("weight_hh")->data.data(), s.ones.data(), s.hh_rows.data()},
             {gates, now.data(), s.ones.data()});
      }
      for (int64_t n = begin; n < end; ++n) {
        const int64_t p = s.place(n, t);
        step_forward(s.units, gates + p * s.gates, t == 0 ? nullptr : cells + s.place(n, t - 1) * s.units,
                     cells + p * s.units, y.data.data() + p * s.units);
      }
    }
  });
  return y;
}

// One place: from the gradients of the hidden state and of the cell to those of the gates' sums (written) and
// of the cell before (in place).
void step_backward(int64_t units, const double* gates, const double* before, const double* cell,
                   const double* dhidden, double* dcell, double* dgates) {
  for (int64_t u = 0; u < units; ++u) {
    const double i = gates[u], f = gates[units + u], g = gates[2 * units + u], o = gates[3 * units + u];
    const double squashed = std::tanh(cell[u]);
    const double dc = dcell[u] + dhidden[u] * o * (1 - squashed * squashed);
    dgates[u] = dc * g * i * (1 - i);
    dgates[units + u] = before == nullptr ? 0 : dc * before[u] * f * (1 - f);
    dgates[2 * units + u] = dc * i * (1 - g * g);
    dgates[3 * units + u] = dhidden[u] * squashed * o * (1 - o);
    dcell[u] = dc * f;
  }
}

// Gradients of the gates' sums at every place.
std::vector<double> gate_gradients(const NodeContext& c, const Cells& s, const Tensor& grad) {
  const double* const gates = c.saved.reals.data();
  const double* const cells = gates + s.places() * s.gates;
  std::vector<double> dgates(static_cast<size_t>(s.places() * s.gates), 0.0);
  for_each_range(s.batch, kRowGrain, s.threads(c), [&](int64_t begin, int64_t end) {
    const int64_t rows = end - begin;
    std::vector<double> dcell(static_cast<size_t>(rows * s.units), 0.0), dhidden;
    const Offsets own = strided(rows, s.units);
    for (int64_t t = s.length; t-- > 0;) {
      dhidden.assign(static_cast<size_t>(rows * s.units), 0.0);
      if (t + 1 < s.length) {
        const Offsets after = s.at(s.gate_rows, begin, end, t + 1);
        gemm(rows, s.units, s.gates, {dgates.data(), after.data(), s.ones.data()},
             {c.param("weight_hh")->data.data(), s.hh_rows.data(), s.ones.data()},
             {dhidden.data(), own.data(), s.ones.data()});
      }
      for (int64_t n = begin; n < end; ++n) {
        const int64_t p = s.place(n, t);
        double* const dh = dhidden.data() + (n - begin) * s.units;
        for (int64_t u = 0; u < s.units; ++u) dh[u] += grad.data[static_cast<size_t>(p * s.units + u)];
        const double* const before = t == 0 ? nullptr : cells + s.place(n, t - 1) * s.units;
        step_backward(s.units, gates + p * s.gates, before, cells + p * s.units, dh,
                      dcell.data() + (n - begin) * s.units, dgates.data() + p * s.gates);
      }
    }
  });
  return dgates;
}

// dloss/dW_ih, dW_hh and dx from the gradients of what x and what h give to the gates of every place.
void weights_backward(const NodeContext& c, const Cells& s, const Tensor& output,
                      const std::vector<double>& of_x, const std::vector<double>& of_h, const Gradients& to) {
  const int threads = s.threads(c);
  // Places that have a step before them, and those of that step.
  Offsets later, earlier;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t t = 1; t < s.length; ++t) {
      later.push_back(s.place(n, t) * s.gates);
      earlier.push_back(s.place(n, t - 1) * s.units);
    }
  }
  Tensor *const of_ih = to.param(c.node, "weight_ih"), *const of_hh = to.param(c.node, "weight_hh");
  for_each_range(s.gates, kGateGrain, threads, [&](int64_t begin, int64_t end) {
    if (of_ih != nullptr)
      gemm(end - begin, s.inputs, s.places(), {of_x.data() + begin, s.ones.data(), s.gate_rows.data()},
           {c.input(0).data.data(), s.x_rows.data(), s.ones.data()},
           {of_ih->data.data(), s.ih_rows.data() + begin, s.ones.data()});
    if (of_hh != nullptr)
      gemm(end - begin, s.units, static_cast<int64_t>(later.size()),
           {of_h.data() + begin, s.ones.data(), later.data()},
           {output.data.data(), earlier.data(), s.ones.data()},
           {of_hh->data.data(), s.hh_rows.data() + begin, s.ones.data()});
  });
  if (to.inputs[0] == nullptr) return;
  for_each_range(s.places(), kPlaceGrain, threads, [&](int64_t begin, int64_t end) {
    gemm(end - begin, s.inputs, s.gates, {of_x.data(), s.gate_rows.data() + begin, s.ones.data()},
         {c.param("weight_ih")->data.data(), s.ih_rows.data(), s.ones.data()},
         {to.inputs[0]->data.data(), s.x_rows.data() + begin, s.ones.data()});
  });
}

void bias_backward(const NodeContext& c, const char* slot, const std::vector<double>& gates,
                   const Gradients& to) {
  Tensor* const db = to.param(c.node, slot);
  if (db == nullptr) return;
  for (size_t i = 0; i < gates.size(); ++i) db->data[i % db->data.size()] += gates[i];
}

void lstm_backward(const NodeContext& c, const Tensor& output, const Tensor& grad, const Gradients& to) {
  const Cells s(c, 4);
  const std::vector<double> dgates = gate_gradients(c, s, grad);
  weights_backward(c, s, output, dgates, dgates, to);
  bias_backward(c, "bias", dgates, to);
}

// ---- gru

// One place: from the sums of x in `gates` and of the state in `sums` to the gates r, z, n, what the state gives to
// n, and the state after it. `before`: null is zero.
void gru_forward(int64_t units, double* gates, const double* sums, const double* before, double* given,
                 double* hidden) {
  for (int64_t u = 0; u < units; ++u) {
    double &r = gates[u], &z = gates[units + u], &n = gates[2 * units + u];
    r = sigmoid(r + sums[u]);
    z = sigmoid(z + sums[units + u]);
    given[u] = sums[2 * units + u];
    n = std::tanh(n + r * given[u]);
    hidden[u] = (1 - z) * n + (before == nullptr ? 0 : z * before[u]);
  }
}

AnyTensor gru(const NodeContext& c) {
  const Cells s(c, 3);
  const Tensor *const bias_ih = c.param("bias_ih"), *const bias_hh = c.param("bias_hh");
  Tensor y = c.make();
  c.saved.reals.assign(static_cast<size_t>(s.places() * (s.gates + s.units)), 0.0);
  double* const gates = c.saved.reals.data();
  double* const given = gates + s.places() * s.gates;
  for_each_range(s.batch, kRowGrain, s.threads(c), [&](int64_t begin, int64_t end) {
    const int64_t rows = end - begin;
    for (int64_t p = begin * s.length; bias_ih != nullptr && p < end * s.length; ++p)
      std::copy(bias_ih->data.begin(), bias_ih->data.end(), gates + p * s.gates);
    gemm(rows * s.length, s.gates, s.inputs,
         {c.input(0).data.data(), s.x_rows.data() + begin * s.length, s.ones.data()},
         {c.param("weight_ih")->data.data(), s.ones.data(), s.ih_rows.data()},
         {gates, s.gate_rows.data() + begin * s.length, s.ones.data()});
    const Offsets own = strided(rows, s.gates);
    std::vector<double> sums;
    for (int64_t t = 0; t < s.length; ++t) {
      sums.assign(static_cast<size_t>(rows * s.gates), 0.0);
      for (int64_t r = 0; bias_hh != nullptr && r < rows; ++r)
        std::copy(bias_hh->data.begin(), bias_hh->data.end(), sums.data() + r * s.gates);
      if (t > 0) {
        const Offsets before = s.at(s.h_rows, begin, end, t - 1);
        gemm(rows, s.gates, s.units, {y.data.data(), before.data(), s.ones.data()},
             {c.param("weight_hh")->data.data(), s.ones.data(), s.hh_rows.data()},
             {sums.data(), own.data(), s.ones.data()});
      }
      for (int64_t n = begin; n < end; ++n) {
        const int64_t p = s.place(n, t);
        gru_forward(s.units, gates + p * s.gates, sums.data() + (n - begin) * s.gates,
                    t == 0 ? nullptr : y.data.data() + s.place(n, t - 1) * s.units, given + p * s.units,
                    y.data.data() + p * s.units);
      }
    }
  });
  return y;
}

// One place: from the gradient of the state to those of what x and what the state before give to the gates, and of
// the state before (in place, without its part through the gates).
void gru_step_backward(int64_t units, const double* gates, const double* given, const double* before,
                       double* dhidden, double* of_x, double* of_h) {
  for (int64_t u = 0; u < units; ++u) {
    const double r = gates[u], z = gates[units + u], n = gates[2 * units + u];
    const double dn = dhidden[u] * (1 - z) * (1 - n * n);
    const double state = before == nullptr ? 0 : before[u];
    of_x[u] = of_h[u] = dn * given[u] * r * (1 - r);
    of_x[units + u] = of_h[units + u] = dhidden[u] * (state - n) * z * (1 - z);
    of_x[2 * units + u] = dn;
    of_h[2 * units + u] = dn * r;
    dhidden[u] *= z;
  }
}

void gru_backward(const NodeContext& c, const Tensor& output, const Tensor& grad, const Gradients& to) {
  const Cells s(c, 3);
  const double* const gates = c.saved.reals.data();
  const double* const given = gates + s.places() * s.gates;
  std::vector<double> of_x(static_cast<size_t>(s.places() * s.gates)), of_h(of_x.size());
  for_each_range(s.batch, kRowGrain, s.threads(c), [&](int64_t begin, int64_t end) {
    const int64_t rows = end - begin;
    std::vector<double> dhidden(static_cast<size_t>(rows * s.units), 0.0);
    const Offsets own = strided(rows, s.units);
    for (int64_t t = s.length; t-- > 0;) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t p = s.place(n, t);
        double* const dh = dhidden.data() + (n - begin) * s.units;
        for (int64_t u = 0; u < s.units; ++u) dh[u] += grad.data[static_cast<size_t>(p * s.units + u)];
        gru_step_backward(s.units, gates + p * s.gates, given + p * s.units,
                          t == 0 ? nullptr : output.data.data() + s.place(n, t - 1) * s.units, dh,
                          of_x.data() + p * s.gates, of_h.data() + p * s.gates);
      }
      const Offsets now = s.at(s.gate_rows, begin, end, t);
      gemm(rows, s.units, s.gates, {of_h.data(), now.data(), s.ones.data()},
           {c.param("weight_hh")->data.data(), s.hh_rows.data(), s.ones.data()},
           {dhidden.data(), own.data(), s.ones.data()});
    }
  });
  weights_backward(c, s, output, of_x, of_h, to);
  bias_backward(c, "bias_ih", of_x, to);
  bias_backward(c, "bias_hh", of_h, to);
}

}  // namespace

std::vector<OpFunctions> sequence_ops() {
  return {{ir::Op::kPositionEmbedding, position_embedding, position_embedding_backward},
          {ir::Op::kAttention, attention, attention_backward},
          {ir::Op::kLstm, lstm, lstm_backward},
          {ir::Op::kGru, gru, gru_backward}};
}

}  // namespace bakeoff::referee
