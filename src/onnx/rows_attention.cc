// Attention and rotary embedding, spelled out with matmul and softmax. The IR has an op for attention, but
// ONNX's has a past, masks of any rank, grouped heads, a soft cap, and an output of its scores. All masks
// are added before the softmax. A hidden place gets -1e30, not -inf: a fully hidden row would become NaN.

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

constexpr double kMasked = -1e30;  // in place of -inf, which leaves no number where a whole row is masked

// N,T,heads D to N,heads,T,D.
Result<Value> heads_of(Mapper& m, const Value& x, int64_t heads) {
  if (!x.is_graph()) return refused("an input is a constant");
  if (x.layout.rank() == 4) return x;
  if (x.layout.rank() != 3 || heads < 1 || x.layout.dims[2] % heads != 0 || x.layout.n > 0)
    return refused("its heads do not fit");
  Layout cut_up = x.layout;
  cut_up.dims = {x.layout.dims[0], x.layout.dims[1], heads, x.layout.dims[2] / heads};
  return m.transposed_value(m.reshaped(x, cut_up), {0, 2, 1, 3});
}

// Where a constant mask lets a query see a key: 0, else `masked`; numbers above it are kept.
ArrayPtr mask_numbers(const Array& mask, double masked) {
  auto made = std::make_shared<Array>(Array{.kind = Kind::kFloat, .shape = mask.shape});
  for (size_t i = 0; i < mask.size(); ++i) {
    const double x = mask.real(i);
    made->reals.push_back(mask.is_float() ? std::max(x, masked) : x != 0 ? 0 : masked);
  }
  return made;
}

// What is added to scores of T queries and S keys of which `past` come first; keys beyond the mask's are masked.
Result<Value> mask_of(Mapper& m, const Call& call, size_t most_axes, int64_t keys, double masked) {
  Value mask = call.in(3);
  if (mask.is_const()) {
    for (ArrayPtr& at : mask.at) at = mask_numbers(*at, masked);
  } else if (mask.kind == Kind::kBool) {
    if (std::isinf(masked)) return refused("it shows scores that the inputs mask");
    TRY(mask, as_numbers(m, mask));
    TRY(mask, m.scalar_op("sub", mask, 1));
    TRY(mask, m.scalar_op("mul", mask, -masked));
  } else if (mask.kind == Kind::kInt) {
    return refused("its mask holds integers");
  }
  const size_t rank = rank_of(mask);
  if (rank < 1 || rank > most_axes) return refused("its mask does not fit");
  const int64_t size = mask.is_const() ? mask.at[0]->shape.back() : mask.layout.dims.back();
  if (size == keys || size == 1) return mask;
  if (size > keys) return refused("its mask does not fit");
  if (mask.is_const()) {
    for (ArrayPtr& at : mask.at) {
      Shape rest = at->shape;
      rest.back() = keys - size;
      at = joined({at, filled(Kind::kFloat, rest, masked)}, rank - 1);
    }
    return mask;
  }
  if (mask.layout.holds_batch(rank - 1)) return refused("its mask does not fit");
  Ints pads(2 * (ir_shape(mask.layout).size() - 1), 0);
  pads.back() = keys - size;
  Layout wide = mask.layout;
  wide.dims.back() = keys;
  return m.make("pad", {mask.name}, wide, {{"pad", numbers_text(pads)}, {"value", real_text(masked)}});
}

// Masks the keys beyond each row's number of them.
Result<Value> padding_of(const Call& call, int64_t keys, double masked) {
  const Value& lengths = call.in(6);
  Value made;
  if (!lengths.is_const()) return refused("the number of keys depends on the inputs (nonpad_kv_seqlen)");
  for (int which = 0; which < 2; ++which) {
    const Array& all = *lengths.at[which];
    Array mask{.kind = Kind::kFloat, .shape = {static_cast<int64_t>(all.size()), 1, 1, keys}};
    for (const int64_t n : all.ints) {
      for (int64_t key = 0; key < keys; ++key) mask.reals.push_back(key < n ? 0 : masked);
    }
    made.at[which] = std::make_shared<Array>(std::move(mask));
  }
  return made;
}

// A query sees the keys up to its own place, behind those of the past.
Value causal_mask(Mapper& m, int64_t queries, int64_t keys, int64_t past, double masked) {
  Array mask{.kind = Kind::kFloat, .shape = {queries, keys}};
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) mask.reals.push_back(j <= i + past ? 0 : masked);
  }
  return m.constant(std::make_shared<Array>(std::move(mask)));
}

// Scores with all masks.
Result<Value> masked_scores(Mapper& m, const Call& call, Value scores, int64_t past, double masked) {
  const int64_t queries = scores.layout.dims[2], keys = scores.layout.dims[3];
  if (call.integer("is_causal", 0) != 0) {
    if (call.has(6)) return refused("it is causal by the number of keys of each row");
    TRY(scores, m.elementwise("add", {scores, causal_mask(m, queries, keys, past, masked)}));
  }
  if (call.has(3)) {
    TRY(const Value mask, mask_of(m, call, scores.layout.rank(), keys, masked));
    TRY(scores, m.elementwise("add", {scores, mask}));
  }
  if (call.has(6)) {
    TRY(const Value padding, padding_of(call, keys, masked));
    TRY(scores, m.elementwise("add", {scores, padding}));
  }
  return scores;
}

// The last step of scores, and what the fourth output shows of it: the scores, capped, masked, or as weights.
struct Scores {
  Value weights, shown;
};

Result<Scores> scores_of(Mapper& m, const Call& call, const Value& q, const Value& k, int64_t past) {
  const int64_t mode = call.integer("qk_matmul_output_mode", 0);
  const double scale = call.real("scale", 1 / std::sqrt(static_cast<double>(q.layout.dims[3])));
  TRY(Value scores, product(m, q, m.transposed_value(k, {0, 1, 3, 2})));
  TRY(scores, m.scalar_op("mul", scores, scale));
  if (const double cap = call.real("softcap", 0); cap > 0) {
    TRY(scores, m.scalar_op("div", scores, cap));
    TRY(scores, m.elementwise("tanh", {scores}));
    TRY(scores, m.scalar_op("mul", scores, cap));
    if (mode == 0 && call.wants(3)) return refused("it shows the scores before they are capped");
  }
  Scores made{.weights = {}, .shown = scores};
  TRY(const Value whole, masked_scores(m, call, scores, past, kMasked));
  if (mode == 2 && call.wants(3)) {
    TRY(made.shown, masked_scores(m, call, scores, past, -std::numeric_limits<double>::infinity()));
  }
  made.weights =
      m.make("softmax", {whole.name}, whole.layout, {{"axis", std::to_string(ir_axis(whole.layout, 3))}});
  if (mode == 3) made.shown = made.weights;
  return made;
}

// softmax(q k^T scale + mask) v, spelled out. Keys and values of the past come first.
Result<Values> attention(Mapper& m, const Call& call) {
  for (const char* side : {"left_window_size", "right_window_size"}) {
    if (call.integer(side, -1) >= 0) return refused("it sees a window of the keys");
  }
  const bool flat = call.in(0).is_graph() && call.in(0).layout.rank() == 3;
  TRY(const Value q, heads_of(m, call.in(0), call.integer("q_num_heads", 0)));
  TRY(Value k, heads_of(m, call.in(1), call.integer("kv_num_heads", 0)));
  TRY(Value v, heads_of(m, call.in(2), call.integer("kv_num_heads", 0)));
  if (q.layout.rank() != 4 || k.layout.rank() != 4 || v.layout.rank() != 4)
    return refused("its sizes do not fit");
  int64_t past = 0;
  if (call.has(4) != call.has(5)) return refused("it has a past of keys or of values alone");
  if (call.has(4)) {
    TRY(const Value keys, concatenated(m, {call.in(4), k}, 2));
    TRY(v, concatenated(m, {call.in(5), v}, 2));
    past = keys.layout.dims[2] - k.layout.dims[2];
    k = keys;
  }
  Values made(4);
  made[1] = k;
  made[2] = v;
  const int64_t share = k.layout.dims[1] > 0 ? q.layout.dims[1] / k.layout.dims[1] : 0;
  if (share < 1 || share * k.layout.dims[1] != q.layout.dims[1]) return refused("its heads do not fit");
  k = repeated(m, k, 1, share);  // heads of queries that share keys lie together
  v = repeated(m, v, 1, share);
  TRY(const Scores scores, scores_of(m, call, q, k, past));
  made[3] = scores.shown;
  TRY(made[0], product(m, scores.weights, v));
  if (!flat) return made;
  const Value back = m.transposed_value(made[0], {0, 2, 1, 3});
  Layout whole = back.layout;
  whole.dims = {back.layout.dims[0], back.layout.dims[1], back.layout.dims[2] * back.layout.dims[3]};
  made[0] = m.reshaped(back, whole);
  return made;
}

// A cache of angles for x of N,T,heads,D: its rows by the positions, or as it is; N,T,1,D/2.
Result<Value> angles(Mapper& m, const Call& call, size_t input) {
  Value cache = call.in(input);
  if (call.has(3)) {
    const Value& at = call.in(3);
    if (at.is_const() && cache.is_const()) {
      if (at.at[0]->is_float() || rank_of(cache) != 2) return refused("its positions do not fit");
      for (int which = 0; which < 2; ++which) {
        for (const int64_t id : at.at[which]->ints) {
          if (id < 0 || id >= cache.at[which]->shape[0]) return refused("a position is out of range");
        }
        cache.at[which] = taken(*cache.at[which], 0, *at.at[which]);
      }
    } else if (cache.is_const() && cache.fixed() && rank_of(cache) == 2) {
      TRY(const std::string table, m.weight(cache, "weight", false));
      Layout rows = at.layout;
      rows.dims.push_back(cache.at[0]->shape[1]);
      cache = m.make("embedding", {at.name}, rows, {}, {{"weight", table}});
    } else {
      return refused("its cache is computed from the inputs");
    }
  }
  const size_t rank = rank_of(cache);
  if (rank != 3) return refused("its cache does not fit");
  for (ArrayPtr& at : cache.at) at = without_origins(at);
  return with_axis(m, cache, 2);
}

// Pairs of features turned by the angle of their position.
Result<Values> rotary(Mapper& m, const Call& call) {
  Value x = call.in(0);
  if (!x.is_graph()) return refused("its input is a constant");
  const bool four = x.layout.rank() == 4;
  const Layout before = x.layout;
  if (four) {
    x = m.transposed_value(x, {0, 2, 1, 3});
  } else {
    const int64_t heads = call.integer("num_heads", 0);
    if (x.layout.rank() != 3 || heads < 1 || x.layout.dims[2] % heads != 0 || x.layout.holds_batch(2))
      return refused("its heads do not fit");
    Layout cut_up = x.layout;
    cut_up.dims.back() /= heads;
    cut_up.dims.insert(cut_up.dims.begin() + 2, heads);
    x = m.reshaped(x, cut_up);
  }
  if (x.layout.n > 1) return refused("turns features along the batch");
  const int64_t size = x.layout.dims[3], asked = call.integer("rotary_embedding_dim", 0),
                turned = asked == 0 ? size : asked, half = turned / 2;
  if (turned < 2 || turned > size || turned % 2 != 0) return refused("its sizes do not fit");
  const bool pairs = call.integer("interleaved", 0) != 0;
  const Value a = pairs ? cut(m, x, 3, 0, turned - 1, 2) : cut(m, x, 3, 0, half, 1);
  const Value b = pairs ? cut(m, x, 3, 1, turned, 2) : cut(m, x, 3, half, turned, 1);
  TRY(const Value cosine, angles(m, call, 1));
  TRY(const Value sine, angles(m, call, 2));
  const auto sum = [&](const Value& c, const Value& s, const char* op) -> Result<Value> {
    TRY(const Value first, m.elementwise("mul", {c, a}));
    TRY(const Value second, m.elementwise("mul", {s, b}));
    return m.elementwise(op, {first, second});
  };
  TRY(const Value real, sum(cosine, sine, "sub"));
  TRY(const Value imaginary, sum(sine, cosine, "add"));
  Values parts = {real, imaginary};
  if (pairs) {
    TRY(const Value both, concatenated(m, {with_axis(m, real, 4), with_axis(m, imaginary, 4)}, 4));
    Layout flat = both.layout;
    flat.dims.pop_back();
    flat.dims[3] = turned;
    parts = {m.reshaped(both, flat)};
  }
  if (turned < size) parts.push_back(cut(m, x, 3, turned, size, 1));
  TRY(const Value made, concatenated(m, parts, 3));
  return Values{four ? m.transposed_value(made, {0, 2, 1, 3}) : m.reshaped(made, before)};
}

}  // namespace

Rows attention_rows() { return {{"Attention", attention}, {"RotaryEmbedding", rotary}}; }

}  // namespace bakeoff::onnx
