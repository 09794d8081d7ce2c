// Random decoders, unrolled as an importer sees them, for the tests that compare frameworks with the referee: emitters
// roll them up again (emit/loops.h). A cell reads a place of the sequence (taken in the loop, or all of them in front
// of it) and one or two carried states, in ways of its own or as torch's nn.LSTMCell and nn.GRUCell do; what it gives is stacked, joined or read once behind the last place.

#include <cassert>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "zoo/op_cases.h"

namespace bakeoff::zoo {
namespace {

using ir::DType;
using ir::kBatch;
using ir::Op;
using ir::ValueId;
using tensor::Rng;

class Decoder {
 public:
  explicit Decoder(Rng& rng) : rng_(rng), b_("decoder") {}

  ir::Workload make() {
    const int64_t width = rng_.integer(1, 2);  // places that one step reads
    const int64_t steps = rng_.integer(3, 5);
    const ValueId x = b_.input("x", {DType::kF32, {kBatch, width * steps, rng_.integer(2, 4)}});
    const ValueId y = b_.input("y", {DType::kI32, {kBatch}});
    const bool in_front = rng_.chance(0.4), takes_back = rng_.chance(0.5);
    h_ = rng_.chance(0.4) ? b_.apply(Op::kExpand, {b_.constant(0), x}, {{"shape", ir::Shape{kBatch, units_}}})
                          : b_.apply(Op::kTanh, {b_.linear(place(x, 0, width), "start", units_)});
    c_ = h_;
    std::vector<ValueId> places, items;
    for (int64_t t = 0; in_front && t < steps; ++t) places.push_back(place(x, t, width));
    const int kind = static_cast<int>(rng_.integer(0, 5));
    bias_ = rng_.chance(0.7);
    if (kind == 2) memory_ = b_.linear(x, "memory", units_);
    ValueId given = h_;
    for (int64_t t = 0; t < steps; ++t) {
      const ValueId in = in_front ? places[static_cast<size_t>(t)] : place(x, t, width);
      step(takes_back ? b_.apply(Op::kConcat, {in, given}, {{"axis", int64_t{1}}}) : in, kind);
      given = b_.linear(h_, "out", 3);
      if (!takes_back)
        given = b_.apply(Op::kTanh, {given});
      else
        given = b_.linear(given, "back", units_);
      items.push_back(given);
    }
    return close(items, y);
  }

 private:
  ValueId place(ValueId x, int64_t t, int64_t width) {
    const ValueId slice = b_.apply(
        Op::kSlice, {x},
        {{"axis", int64_t{1}}, {"begin", t * width}, {"end", (t + 1) * width}, {"step", int64_t{1}}});
    return b_.apply(Op::kFlatten, {slice});
  }

  ValueId part(ValueId gates, int64_t n) {
    return b_.apply(
        Op::kSlice, {gates},
        {{"axis", int64_t{1}}, {"begin", n * units_}, {"end", (n + 1) * units_}, {"step", int64_t{1}}});
  }

  ValueId sigmoid(ValueId x) { return b_.apply(Op::kSigmoid, {x}); }
  ValueId tanh(ValueId x) { return b_.apply(Op::kTanh, {x}); }
  ValueId add(ValueId x, ValueId y) { return b_.apply(Op::kAdd, {x, y}); }
  ValueId mul(ValueId x, ValueId y) { return b_.apply(Op::kMul, {x, y}); }

  // The nodes of torch's cells in the order in which torch.export gives them; close() names their parameters.
  void lstm_cell(ValueId in) {
    const ValueId x = b_.linear(in, "cell_ih", units_ * 4, bias_);
    const ValueId sum = add(x, b_.linear(h_, "cell_hh", units_ * 4, bias_));
    const ValueId i = part(sum, 0), f = part(sum, 1), g = part(sum, 2), o = part(sum, 3);
    const ValueId kept = mul(sigmoid(f), c_), made = tanh(g);
    c_ = add(kept, mul(sigmoid(i), made));
    const ValueId shown = tanh(c_);
    h_ = mul(sigmoid(o), shown);
  }
  void gru_cell(ValueId in) {
    const ValueId x = b_.linear(in, "cell_ih", units_ * 3, bias_);
    const ValueId x_r = part(x, 0), x_z = part(x, 1), x_n = part(x, 2);
    const ValueId h = b_.linear(h_, "cell_hh", units_ * 3, bias_);
    const ValueId h_r = part(h, 0), h_z = part(h, 1), h_n = part(h, 2);
    const ValueId r = sigmoid(add(x_r, h_r)), z = sigmoid(add(x_z, h_z));
    const ValueId n = tanh(add(x_n, mul(r, h_n)));
    h_ = add(n, mul(z, b_.apply(Op::kSub, {h_, n})));
  }

  // 0: a simple cell, 1: gates and two states, 2: attention over the whole sequence, 3: nn.LSTMCell, 4: nn.GRUCell,
  // 5: nn.RNNCell.
  void step(ValueId in, int kind) {
    if (kind == 3) return lstm_cell(in);
    if (kind == 4) return gru_cell(in);
    if (kind == 5) {
      const ValueId x = b_.linear(in, "cell_ih", units_, bias_);
      h_ = tanh(add(x, b_.linear(h_, "cell_hh", units_, bias_)));
      return;
    }
    const ValueId sum = b_.apply(Op::kAdd, {b_.linear(in, "in", units_ * (kind == 1 ? 3 : 1)),
                                            b_.linear(h_, "again", units_ * (kind == 1 ? 3 : 1), false)});
    if (kind == 1) {
      const ValueId forget = part(sum, 0), made = part(sum, 1), shown = part(sum, 2);
      c_ = b_.apply(Op::kAdd, {b_.apply(Op::kMul, {b_.apply(Op::kSigmoid, {forget}), c_}),
                               b_.apply(Op::kTanh, {made})});
      h_ = b_.apply(Op::kMul, {b_.apply(Op::kSigmoid, {shown}), b_.apply(Op::kTanh, {c_})});
      return;
    }
    h_ = b_.apply(Op::kTanh, {sum});
    if (kind == 0) return;
    const ValueId query = b_.apply(Op::kReshape, {h_}, {{"shape", std::vector<int64_t>{-1, units_, 1}}});
    const ValueId score = b_.apply(Op::kMatmul, {memory_, query});
    const ValueId share = b_.apply(Op::kSoftmax, {score}, {{"axis", int64_t{1}}});
    const ValueId read = b_.apply(Op::kMul, {share, memory_});
    h_ = b_.apply(Op::kAdd, {h_, b_.apply(Op::kSum, {read}, {{"axes", std::vector<int64_t>{1}}})});
  }

  ir::Workload close(std::vector<ValueId>& items, ValueId y) {
    ValueId all = items.back();
    const int way = static_cast<int>(rng_.integer(0, 2));
    for (ValueId& item : items) {
      const ir::Shape& shape = b_.shape(item);
      if (way == 1) item = b_.apply(Op::kReshape, {item}, {{"shape", std::vector<int64_t>{-1, 1, shape[1]}}});
    }
    if (way > 0) all = b_.apply(Op::kConcat, items, {{"axis", int64_t{1}}});
    if (way == 1) all = b_.apply(Op::kFlatten, {all});
    if (rng_.chance(0.5)) all = b_.apply(Op::kConcat, {all, h_}, {{"axis", int64_t{1}}});
    Result<ir::Workload> workload = b_.finish(b_.softmax_cross_entropy(b_.linear(all, "head", 3), y));
    assert(workload && "the generator made an invalid workload");
    const std::string part = rng_.chance(0.4) ? "decoder." : "";  // all but the head is a block
    for (ir::Parameter& p : workload->parameters) {
      if (p.name.starts_with("cell_"))  // "cell_ih.weight" -> "cell.weight_ih"
        p.name = "cell." + p.name.substr(8) + "_" + p.name.substr(5, 2);
      if (!p.name.starts_with("head")) p.name = part + p.name;
    }
    return std::move(workload).value();
  }

  Rng& rng_;
  ir::Builder b_;
  int64_t units_ = 4;
  bool bias_ = true;
  ValueId h_ = -1, c_ = -1, memory_ = -1;
};

}  // namespace

ir::Workload random_loop(Rng& rng) { return Decoder(rng).make(); }

}  // namespace bakeoff::zoo
