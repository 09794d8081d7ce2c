// LSTM, GRU and RNN, in one of two ways. by_op() uses the IR's op: the layer starts from zero states, has
// the usual activations, and its cell is not read (Layer::is_op). step_by_step() spells out ONNX's formulas
// for each step, up to 64 of them.
//
// ONNX packs weights as [directions, gates x units, ...] with the gates in its own order (i, o, f, c); the
// IR has i, f, g, o. gates() reorders the rows. A bidirectional layer is two ops whose states are joined.
// ONNX has two biases that an LSTM only adds: their sum becomes one parameter.

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <optional>

#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

constexpr int64_t kMostSteps = 64;  // that are spelled out

// Rows of gates in another order: `order` of the blocks of ONNX.
ArrayPtr gates(const Array& array, const Ints& order) {
  const auto blocks = static_cast<int64_t>(order.size());
  const int64_t units = array.shape[0] / blocks;
  std::vector<ArrayPtr> parts;
  for (const int64_t one : order) parts.push_back(sliced(array, 0, one * units, units));
  return joined(parts, 0);
}

struct Recurrent {
  std::string op;  // of the IR; "rnn", which it lacks, is spelled out
  int64_t gates = 1;
  Ints order = {};                            // ours, as places in ONNX's
  std::vector<std::string> activations = {};  // the usual ones
};

// A recurrent node whose sizes have been checked.
struct Layer {
  const Call& call;
  const Recurrent& kind;
  Value x = {};  // N,T,F
  int64_t steps = 0, units = 0, directions = 1;
  bool rows_lead = false;                     // ONNX's layout 1
  std::vector<std::string> activations = {};  // of all directions

  bool back(int64_t d) const { return call.text("direction", "forward") == "reverse" || d == 1; }
  bool used(size_t input) const {
    if (!call.has(input)) return false;
    const Value& v = call.in(input);
    return !v.is_const() || std::ranges::any_of(v.at[0]->reals, [](double number) { return number != 0; });
  }
  // The IR's op says the same: from a state of 0 with the usual gates, and nothing of the cell is read.
  bool is_op() const {
    if (kind.op == "rnn" || used(5) || call.has_attribute("clip")) return false;
    for (size_t i = 0; i < activations.size(); ++i) {
      if (activations[i] != kind.activations[i % kind.activations.size()]) return false;
    }
    if (kind.op == "gru") return call.integer("linear_before_reset", 0) != 0;
    return !used(6) && !used(7) && !call.wants(2) && call.integer("input_forget", 0) == 0;
  }
};

Result<Layer> layer_of(Mapper& m, const Call& call, const Recurrent& kind) {
  Layer made{.call = call, .kind = kind};
  const Value &x = call.in(0), &w = call.in(1), &u = call.in(2);
  if (!x.is_graph() || x.layout.rank() != 3) return refused("its input is no sequence");
  made.rows_lead = call.integer("layout", 0) != 0;
  if (x.layout.n != (made.rows_lead ? 0 : 1) || !x.layout.plain())
    return refused("the batch is not where it reads it");
  if (!w.is_const() || !u.is_const() || !w.fixed() || !u.fixed() || rank_of(w) != 3 || rank_of(u) != 3)
    return refused("its weights are computed from the inputs");
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}, size_t{5}, size_t{6}, size_t{7}}) {
    if (call.in(i).is_const() && !call.in(i).at[0]->is_float()) return refused("its weights hold integers");
  }
  made.directions = w.at[0]->shape[0];
  made.units = u.at[0]->shape[2];
  made.steps = x.layout.dims[made.rows_lead ? 1 : 0];
  const int64_t rows = kind.gates * made.units;
  if (made.units < 1 || made.directions != (call.text("direction", "forward") == "bidirectional" ? 2 : 1) ||
      w.at[0]->shape != Shape{made.directions, rows, x.layout.dims[2]} ||
      u.at[0]->shape != Shape{made.directions, rows, made.units})
    return refused("its sizes do not fit");
  if (call.has(3) && (!call.in(3).is_const() || !call.in(3).fixed() ||
                      call.in(3).at[0]->shape != Shape{made.directions, 2 * rows}))
    return refused("its biases do not fit");
  if (call.has(4)) {
    const Value& lengths = call.in(4);
    const bool whole = lengths.is_const() &&
                       std::ranges::all_of(lengths.at[0]->ints, [&](int64_t n) { return n == made.steps; });
    if (!whole)
      return refused("rows have lengths of their own (sequence_lens); leave them out if all are full");
  }
  made.x = made.rows_lead ? x : m.transposed_value(x, {1, 0, 2});
  if (call.has_attribute("activations")) {
    const auto& names = call.attributes.at("activations")->strings();
    made.activations.assign(names.begin(), names.end());
  }
  if (made.activations.empty()) made.activations = kind.activations;
  if (made.activations.size() < kind.activations.size()) return refused("its activations do not fit");
  return made;
}

// The part of one direction.
ArrayPtr direction_of(const Array& array, int64_t d) {
  const ArrayPtr one = sliced(array, 0, d, 1);
  return shaped(*one, Shape(one->shape.begin() + 1, one->shape.end()));
}

// The biases of one direction: of the inputs and of the states.
std::pair<ArrayPtr, ArrayPtr> biases_of(const Layer& layer, int64_t d) {
  const ArrayPtr both = direction_of(*layer.call.in(3).at[0], d);
  const int64_t rows = layer.kind.gates * layer.units;
  return {sliced(*both, 0, 0, rows), sliced(*both, 0, rows, rows)};
}

ArrayPtr sum_of(const Array& a, const Array& b) {
  Array sum = a;
  if (a.has_origins() || b.has_origins()) {
    sum.first = -1;
    sum.origins.clear();
    for (const Array* one : {&a, &b}) {
      for (size_t i = 0; i < one->size(); ++i) sum.origins.push_back(one->origin(i));
    }
  }
  for (size_t i = 0; i < sum.reals.size(); ++i) sum.reals[i] += b.reals[i];
  return std::make_shared<Array>(std::move(sum));
}

Status add_biases(Mapper& m, const Layer& layer, int64_t d, Params& params) {
  if (!layer.call.has(3)) return Done{};
  const Value& b = layer.call.in(3);
  const auto biases = biases_of(layer, d);
  const ArrayPtr first = gates(*biases.first, layer.kind.order),
                 second = gates(*biases.second, layer.kind.order);
  if (layer.kind.op == "lstm") {
    m.notes.insert("the two biases of an LSTM are one, their sum");
    TRY(const std::string bias, m.weight(with_array(b, sum_of(*first, *second)), "bias"));
    params.emplace_back("bias", bias);
    return Done{};
  }
  TRY(const std::string ih_bias, m.weight(with_array(b, first), "bias_ih"));
  TRY(const std::string hh_bias, m.weight(with_array(b, second), "bias_hh"));
  params.emplace_back("bias_ih", ih_bias);
  params.emplace_back("bias_hh", hh_bias);
  return Done{};
}

// N,T,U for each direction to N,T,D,U.
Value stacked(Mapper& m, const std::vector<Value>& parts, int64_t time, int64_t units) {
  Layout one{.dims = {1, time, 1, units}, .n = 0};
  std::vector<std::string> names;
  for (const Value& v : parts) names.push_back(m.reshaped(v, one).name);
  if (names.size() == 1) return m.reshaped(parts[0], one);
  Layout whole = one;
  whole.dims[2] = static_cast<int64_t>(names.size());
  return m.make("concat", names, whole, {{"axis", "2"}});
}

// What one direction gives: all states N,T,U, the last one and the last cell N,1,U.
struct States {
  Value all, last, cell;
};

Result<States> by_op(Mapper& m, const Layer& layer, int64_t d) {
  const Value &w = layer.call.in(1), &u = layer.call.in(2);
  const auto weight = [&](const Value& v, const char* slot) {
    return m.weight(with_array(v, gates(*direction_of(*v.at[0], d), layer.kind.order)), slot);
  };
  TRY(const std::string ih, weight(w, "weight_ih"));
  TRY(const std::string hh, weight(u, "weight_hh"));
  Params params = {{"weight_ih", ih}, {"weight_hh", hh}};
  CHECK_OK(add_biases(m, layer, d, params));
  Layout hidden = layer.x.layout;
  hidden.dims[2] = layer.units;
  States made;
  made.all =
      m.make(layer.kind.op, {layer.x.name}, hidden, {{"reverse", layer.back(d) ? "true" : "false"}}, params);
  if (layer.call.wants(1)) {
    const int64_t at = layer.back(d) ? 0 : layer.steps - 1;
    made.last = cut(m, made.all, 1, at, at + 1, 1);
  }
  return made;
}

// ---- step by step

Result<Value> activated(Mapper& m, const Layer& layer, int64_t d, size_t which, const Value& x) {
  static const std::map<std::string, const char*> ops = {{"Sigmoid", "sigmoid"},
                                                         {"Tanh", "tanh"},
                                                         {"Relu", "relu"},
                                                         {"Softsign", "softsign"},
                                                         {"Softplus", "softplus"}};
  const size_t each = layer.kind.activations.size(), at = static_cast<size_t>(d) * each + which;
  const std::string& name = layer.activations[at < layer.activations.size() ? at : which];
  const auto found = ops.find(name);
  if (found == ops.end()) return refused(fmt::format("its activation {} has no counterpart here", name));
  return m.elementwise(found->second, {x});
}

// The state that a direction begins in, N,U; nothing where it is 0.
Result<Value> first_state(Mapper& m, const Layer& layer, size_t input, int64_t d) {
  if (!layer.used(input)) return Value{};
  const Value& v = layer.call.in(input);
  const size_t axis = layer.rows_lead ? 1 : 0;
  const Layout row{.dims = {1, layer.units}, .n = 0};
  if (rank_of(v) != 3) return refused("its first state does not fit");
  if (v.is_graph()) {
    if (!v.layout.holds_batch(1 - axis) || !v.layout.plain()) return refused("its first state does not fit");
    return m.reshaped(cut(m, v, axis, d, d + 1, 1), row);
  }
  Value one = v;
  for (ArrayPtr& at : one.at) {
    if (at->shape[axis] != layer.directions || at->shape[2] != layer.units)
      return refused("its first state does not fit");
    const ArrayPtr part = sliced(*at, axis, d, 1);
    at = shaped(*part, {part->shape[1 - axis], layer.units});
  }
  return with_rows(m, one, row);
}

// x W^T + b of some gates; the state of 0 gives nothing but the bias.
Result<Value> gates_of(Mapper& m, const Layer& layer, int64_t d, const Value& state, int64_t first,
                       int64_t count) {
  const Value& u = layer.call.in(2);
  const ArrayPtr rows = sliced(*direction_of(*u.at[0], d), 0, first * layer.units, count * layer.units);
  return linear(m, state, with_array(u, rows), {});
}

Result<Value> plus(Mapper& m, const Value& a, const Value& b) {
  if (b.absent()) return a;
  return m.elementwise("add", {a, b});
}

// The inputs' share of all gates at all steps, with the biases: N,T,G U. Those of a GRU's candidate state are apart
// where its reset gate acts on the product.
Result<Value> inputs_share(Mapper& m, const Layer& layer, int64_t d) {
  const Value &w = layer.call.in(1), &b = layer.call.in(3);
  Value bias;
  if (!b.absent()) {
    const auto [ih, hh] = biases_of(layer, d);
    auto own = std::make_shared<Array>(*hh);
    const bool apart = layer.kind.op == "gru" && layer.call.integer("linear_before_reset", 0) != 0;
    if (apart) {
      const auto kept = static_cast<size_t>(2 * layer.units);
      own->origins.clear();
      for (size_t i = 0; i < own->size(); ++i) own->origins.push_back(i < kept ? hh->origin(i) : -1);
      std::fill(own->reals.begin() + 2 * layer.units, own->reals.end(), 0);
    }
    bias = with_array(b, sum_of(*ih, *own));
    m.notes.insert("biases of recurrent layers that add up are one, their sum");
  }
  return linear(m, layer.x, with_array(w, direction_of(*w.at[0], d)), bias);
}

struct Step {
  Value state, cell;  // absent: 0
};

Value part_of(Mapper& m, const Layer& layer, const Value& all, int64_t gate) {
  return cut(m, all, 1, gate * layer.units, (gate + 1) * layer.units, 1);
}

// Gates i, o, f, c. Peepholes see the cell.
Result<Step> lstm_step(Mapper& m, const Layer& layer, int64_t d, const Value& x, const Step& before) {
  Value all = x;
  if (!before.state.absent()) {
    TRY(const Value own, gates_of(m, layer, d, before.state, 0, 4));
    TRY(all, plus(m, x, own));
  }
  const auto gate = [&](int64_t which, int64_t peephole, const Value& cell) -> Result<Value> {
    Value sum = part_of(m, layer, all, which);
    if (layer.used(7) && !cell.absent()) {
      const Value& p = layer.call.in(7);
      const ArrayPtr row = direction_of(*p.at[0], d);
      const Value weight = with_array(p, sliced(*row, 0, peephole * layer.units, layer.units));
      m.train_everywhere(weight);
      TRY(const Value seen, m.elementwise("mul", {cell, weight}));
      TRY(sum, plus(m, sum, seen));
    }
    return activated(m, layer, d, 0, sum);
  };
  TRY(const Value in, gate(0, 0, before.cell));
  TRY(const Value fresh, activated(m, layer, d, 1, part_of(m, layer, all, 3)));
  Step made;
  TRY(made.cell, m.elementwise("mul", {in, fresh}));
  if (!before.cell.absent()) {
    TRY(const Value keep, gate(2, 2, before.cell));
    TRY(const Value kept, m.elementwise("mul", {keep, before.cell}));
    TRY(made.cell, m.elementwise("add", {kept, made.cell}));
  }
  TRY(const Value out, gate(1, 1, made.cell));
  TRY(const Value shown, activated(m, layer, d, 2, made.cell));
  TRY(made.state, m.elementwise("mul", {out, shown}));
  return made;
}

// Gates z, r, h.
Result<Step> gru_step(Mapper& m, const Layer& layer, int64_t d, const Value& x, const Step& before) {
  const bool after = layer.call.integer("linear_before_reset", 0) != 0;
  const Value& h = before.state;
  Value zr = cut(m, x, 1, 0, 2 * layer.units, 1), fresh = part_of(m, layer, x, 2);
  if (!h.absent()) {
    TRY(const Value own, gates_of(m, layer, d, h, 0, 2));
    TRY(zr, plus(m, zr, own));
  }
  TRY(const Value gates_zr, activated(m, layer, d, 0, zr));
  const Value z = part_of(m, layer, gates_zr, 0), r = part_of(m, layer, gates_zr, 1);
  Value seen;
  if (!h.absent() && !after) {
    TRY(const Value reset, m.elementwise("mul", {r, h}));
    TRY(seen, gates_of(m, layer, d, reset, 2, 1));
  }
  if (after) {
    if (!h.absent()) {
      TRY(seen, gates_of(m, layer, d, h, 2, 1));
    }
    if (layer.call.has(3)) {
      const Value bias =
          with_array(layer.call.in(3), sliced(*biases_of(layer, d).second, 0, 2 * layer.units, layer.units));
      m.train_everywhere(bias);
      if (seen.absent()) {
        TRY(seen, m.elementwise("mul", {r, bias}));
      } else {
        TRY(seen, m.elementwise("add", {seen, bias}));
        TRY(seen, m.elementwise("mul", {r, seen}));
      }
    } else if (!seen.absent()) {
      TRY(seen, m.elementwise("mul", {r, seen}));
    }
  }
  TRY(fresh, plus(m, fresh, seen));
  TRY(fresh, activated(m, layer, d, 1, fresh));
  TRY(const Value rest, m.elementwise("sub", {m.constant(of_real(1)), z}));
  Step made;
  TRY(made.state, m.elementwise("mul", {rest, fresh}));
  if (!h.absent()) {
    TRY(const Value kept, m.elementwise("mul", {z, h}));
    TRY(made.state, m.elementwise("add", {made.state, kept}));
  }
  return made;
}

Result<Step> rnn_step(Mapper& m, const Layer& layer, int64_t d, const Value& x, const Step& before) {
  Value sum = x;
  if (!before.state.absent()) {
    TRY(const Value own, gates_of(m, layer, d, before.state, 0, 1));
    TRY(sum, plus(m, x, own));
  }
  Step made;
  TRY(made.state, activated(m, layer, d, 0, sum));
  return made;
}

Result<States> step_by_step(Mapper& m, const Layer& layer, int64_t d) {
  const Call& call = layer.call;
  if (layer.steps > kMostSteps)
    return refused(fmt::format("it is spelled out, and has more than {} steps", kMostSteps));
  if (call.has_attribute("clip")) return refused("its cells are clipped");
  if (call.integer("input_forget", 0) != 0) return refused("its input gate is coupled to the forget gate");
  if (layer.used(7) && (!call.in(7).is_const() || !call.in(7).fixed() ||
                        call.in(7).at[0]->shape != Shape{layer.directions, 3 * layer.units}))
    return refused("its peepholes do not fit");
  TRY(const Value x, inputs_share(m, layer, d));
  Step step;
  TRY(step.state, first_state(m, layer, 5, d));
  if (layer.kind.op == "lstm") {
    TRY(step.cell, first_state(m, layer, 6, d));
  }
  const Layout row{.dims = {1, layer.kind.gates * layer.units}, .n = 0};
  const Layout one{.dims = {1, 1, layer.units}, .n = 0};
  Values all(static_cast<size_t>(layer.steps));
  for (int64_t i = 0; i < layer.steps; ++i) {
    const int64_t t = layer.back(d) ? layer.steps - 1 - i : i;
    const Value at = m.reshaped(cut(m, x, 1, t, t + 1, 1), row);
    const auto next = layer.kind.op == "lstm" ? lstm_step : layer.kind.op == "gru" ? gru_step : rnn_step;
    TRY(step, next(m, layer, d, at, step));
    all[static_cast<size_t>(t)] = m.reshaped(step.state, one);
  }
  States made;
  TRY(made.all, concatenated(m, all, 1));
  made.last = m.reshaped(step.state, one);
  if (!step.cell.absent()) made.cell = m.reshaped(step.cell, one);
  return made;
}

Result<Values> recurrent(Mapper& m, const Call& call, const Recurrent& kind) {
  TRY(const Layer layer, layer_of(m, call, kind));
  std::vector<Value> all, last, cells;
  for (int64_t d = 0; d < layer.directions; ++d) {
    TRY(const States states, layer.is_op() ? by_op(m, layer, d) : step_by_step(m, layer, d));
    all.push_back(states.all);
    last.push_back(states.last);
    cells.push_back(states.cell);
  }
  Values out(3);
  if (call.wants(0)) {  // T,D,N,U; layout 1: N,T,D,U
    const Value y = stacked(m, all, layer.steps, layer.units);
    out[0] = layer.rows_lead ? y : m.transposed_value(y, {1, 2, 0, 3});
  }
  for (const size_t i : {size_t{1}, size_t{2}}) {  // D,N,U; layout 1: N,D,U
    const std::vector<Value>& parts = i == 1 ? last : cells;
    if (!call.wants(i) || parts[0].absent()) continue;
    const Value whole = stacked(m, parts, 1, layer.units);
    const Value flat = m.reshaped(whole, {{1, layer.directions, layer.units}, 0});
    out[i] = layer.rows_lead ? flat : m.transposed_value(flat, {1, 0, 2});
  }
  return out;
}

}  // namespace

Rows recurrent_rows() {
  return {
      {"LSTM",
       +[](Mapper& m, const Call& c) {
         return recurrent(m, c, {"lstm", 4, {0, 2, 3, 1}, {"Sigmoid", "Tanh", "Tanh"}});
       }},
      {"GRU",
       +[](Mapper& m, const Call& c) {
         return recurrent(m, c, {"gru", 3, {1, 0, 2}, {"Sigmoid", "Tanh"}});
       }},
      {"RNN",
       +[](Mapper& m, const Call& c) {
         return recurrent(m, c, {"rnn", 1, {}, {"Tanh"}});
       }},
  };
}

}  // namespace bakeoff::onnx
