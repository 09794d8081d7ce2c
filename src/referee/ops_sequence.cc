// Attention, LSTM and position embedding.

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
  double* const table = to.param(c.node, "weight")->data.data();
  const auto sequence = static_cast<size_t>(c.shape[1] * c.shape[2]);
  for (size_t i = 0; i < grad.data.size(); ++i) table[i % sequence] += grad.data[i];
  if (to.inputs[0] == nullptr) return;
  for (size_t i = 0; i < grad.data.size(); ++i) to.inputs[0]->data[i] += grad.data[i];
}

// ---- attention

// Sizes and address tables of the matrices of one head of one row of the batch.
struct Heads {
  int64_t queries, keys, heads, width;
  double scale;
  bool causal;
  const IntTensor* last;  // null: no padding
  Offsets query_rows, key_rows, score_rows, ones;

  explicit Heads(const NodeContext& c)
      : queries(c.shape[1]),
        keys(c.input(1).shape[1]),
        heads(c.shape[2]),
        width(c.shape[3]),
        scale(c.options.deviations.attention_scale / std::sqrt(static_cast<double>(width))),
        causal(c.node.flag("causal")),
        last(c.inputs.size() == 4 ? &c.integers(3) : nullptr),
        query_rows(strided(queries, heads * width)),
        key_rows(strided(keys, heads * width)),
        score_rows(strided(queries, keys)),
        ones(strided(std::max(keys, width), 1)) {}

  // Both masks leave the first keys of a query: how many.
  int64_t visible(int64_t row, int64_t query) const {
    int64_t count = causal ? query + 1 : keys;
    if (last != nullptr) count = std::min(count, last->data[static_cast<size_t>(row)] + 1);
    return count;
  }
  int64_t first_query(int64_t row, int64_t head) const { return (row * queries * heads + head) * width; }
  int64_t first_key(int64_t row, int64_t head) const { return (row * keys * heads + head) * width; }
  int64_t scores() const { return queries * keys; }

  // visit(row, head, piece) for every head of every row, in pieces that write to places of their own.
  template <typename Visit>
  void each(const NodeContext& c, const Visit& visit) const {
    const int64_t pieces = c.shape[0] * heads;
    const int threads = threads_for(2 * pieces * scores() * width, c.options.threads);
    for_each_piece(pieces, threads, [&](int64_t piece) { visit(piece / heads, piece % heads, piece); });
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
    const int64_t count = h.visible(row, t);
    const double top = *std::max_element(line, line + count);
    double sum = 0;
    for (int64_t s = 0; s < count; ++s) sum += line[s] = std::exp((line[s] - top) * h.scale);
    for (int64_t s = 0; s < count; ++s) line[s] /= sum;
    std::fill(line + count, line + h.keys, 0.0);
  }
}

// Keeps the weights of every row and head for backward.
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
    gemm(h.queries, h.width, h.keys, h.by_row(weights, h.score_rows),
         h.by_row(c.input(2).data.data() + at_key, h.key_rows),
         h.sum_by_row(y.data.data() + at_query, h.query_rows));
  });
  return y;
}

// With weights P and output gradient G: dv = P^T G, dP = G v^T, dS = P (dP - sum dP P) / sqrt D, dq = dS k,
// dk = dS^T q.
void attention_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  const Heads h(c);
  h.each(c, [&](int64_t row, int64_t head, int64_t piece) {
    const double* const weights = c.saved.reals.data() + piece * h.scores();
    const int64_t at_query = h.first_query(row, head), at_key = h.first_key(row, head);
    const double* const g = grad.data.data() + at_query;
    if (to.inputs[2] != nullptr) {
      gemm(h.keys, h.width, h.queries, h.by_column(weights, h.score_rows), h.by_row(g, h.query_rows),
           h.sum_by_row(to.inputs[2]->data.data() + at_key, h.key_rows));
    }
    std::vector<double> scores(static_cast<size_t>(h.scores()), 0.0);
    gemm(h.queries, h.keys, h.width, h.by_row(g, h.query_rows),
         h.by_column(c.input(2).data.data() + at_key, h.key_rows), h.sum_by_row(scores.data(), h.score_rows));
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

// Sizes and address tables. Kept for backward: the gates i, f, g, o of every place, then the cells of every
// place.
struct Cells {
  int64_t batch, length, inputs, units, gates;
  Offsets x_rows, gate_rows, h_rows, ih_rows, hh_rows, ones;

  explicit Cells(const NodeContext& c)
      : batch(c.shape[0]),
        length(c.shape[1]),
        inputs(c.input(0).shape[2]),
        units(c.shape[2]),
        gates(4 * units),
        x_rows(strided(places(), inputs)),
        gate_rows(strided(places(), gates)),
        h_rows(strided(places(), units)),
        ih_rows(strided(gates, inputs)),
        hh_rows(strided(gates, units)),
        ones(strided(std::max(gates, inputs), 1)) {}

  int64_t places() const { return batch * length; }
  int threads(const NodeContext& c) const {
    return threads_for(places() * gates * (inputs + units), c.options.threads);
  }
  // Rows of place t of the sequences from `begin` on, in a table of all places.
  Offsets at(const Offsets& rows, int64_t begin, int64_t end, int64_t t) const {
    Offsets picked;
    for (int64_t n = begin; n < end; ++n) picked.push_back(rows[static_cast<size_t>(n * length + t)]);
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
  const Cells s(c);
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
        const int64_t p = n * s.length + t;
        double* const cell = cells + p * s.units;
        step_forward(s.units, gates + p * s.gates, t == 0 ? nullptr : cell - s.units, cell,
                     y.data.data() + p * s.units);
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
        const int64_t p = n * s.length + t;
        double* const dh = dhidden.data() + (n - begin) * s.units;
        for (int64_t u = 0; u < s.units; ++u) dh[u] += grad.data[static_cast<size_t>(p * s.units + u)];
        const double* const cell = cells + p * s.units;
        step_backward(s.units, gates + p * s.gates, t == 0 ? nullptr : cell - s.units, cell, dh,
                      dcell.data() + (n - begin) * s.units, dgates.data() + p * s.gates);
      }
    }
  });
  return dgates;
}

void lstm_backward(const NodeContext& c, const Tensor& output, const Tensor& grad, const Gradients& to) {
  const Cells s(c);
  const std::vector<double> dgates = gate_gradients(c, s, grad);
  const int threads = s.threads(c);
  // Places that have one before them, and those before.
  Offsets later, earlier;
  for (int64_t p = 0; p < s.places(); ++p) {
    if (p % s.length == 0) continue;
    later.push_back(p * s.gates);
    earlier.push_back((p - 1) * s.units);
  }
  for_each_range(s.gates, kGateGrain, threads, [&](int64_t begin, int64_t end) {
    gemm(end - begin, s.inputs, s.places(), {dgates.data() + begin, s.ones.data(), s.gate_rows.data()},
         {c.input(0).data.data(), s.x_rows.data(), s.ones.data()},
         {to.param(c.node, "weight_ih")->data.data(), s.ih_rows.data() + begin, s.ones.data()});
    gemm(end - begin, s.units, static_cast<int64_t>(later.size()),
         {dgates.data() + begin, s.ones.data(), later.data()},
         {output.data.data(), earlier.data(), s.ones.data()},
         {to.param(c.node, "weight_hh")->data.data(), s.hh_rows.data() + begin, s.ones.data()});
  });
  if (Tensor* const db = to.param(c.node, "bias"); db != nullptr) {
    for (size_t i = 0; i < dgates.size(); ++i) db->data[i % static_cast<size_t>(s.gates)] += dgates[i];
  }
  if (to.inputs[0] == nullptr) return;
  for_each_range(s.places(), kPlaceGrain, threads, [&](int64_t begin, int64_t end) {
    gemm(end - begin, s.inputs, s.gates, {dgates.data(), s.gate_rows.data() + begin, s.ones.data()},
         {c.param("weight_ih")->data.data(), s.ih_rows.data(), s.ones.data()},
         {to.inputs[0]->data.data(), s.x_rows.data() + begin, s.ones.data()});
  });
}

}  // namespace

std::vector<OpFunctions> sequence_ops() {
  return {{ir::Op::kPositionEmbedding, position_embedding, position_embedding_backward},
          {ir::Op::kAttention, attention, attention_backward},
          {ir::Op::kLstm, lstm, lstm_backward}};
}

}  // namespace bakeoff::referee
