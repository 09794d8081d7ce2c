// Products, Einsum and norms.
//
// A MatMul or Gemm with a constant matrix is a linear layer (weight transposed to O,I); with two values it
// is the IR's matmul, whose leading axes broadcast, N among them.
//
// Einsum is reduced to what the IR has, two operands at a time from the left: diagonals by a mask, sums
// over letters that only one operand has, then one matmul. Letters in both operands and in the result
// become leading axes; an operand's own letters, and the contracted ones, are merged into one axis each.
// `bqhd,bkhd->bhqk` is a matmul over d with leading axes b and h.

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "ir/op_table.h"
#include "onnx/rows.h"

namespace bakeoff::onnx {

Value with_array(const Value& v, ArrayPtr array) {
  Value made = v;
  made.at[0] = made.at[1] = std::move(array);
  return made;
}

size_t rank_of(const Value& v) { return v.is_const() ? v.at[0]->shape.size() : v.layout.rank(); }

Value with_axis(Mapper& m, const Value& v, size_t at) {
  if (v.is_const()) {
    Value made = v;
    for (ArrayPtr& array : made.at) {
      Shape shape = array->shape;
      shape.insert(shape.begin() + static_cast<int64_t>(at), 1);
      array = shaped(*array, shape);
    }
    return made;
  }
  Layout out = v.layout;
  if (out.n >= static_cast<int>(at)) ++out.n;
  out.dims.insert(out.dims.begin() + static_cast<int64_t>(at), 1);
  return m.reshaped(v, out);
}

namespace {

// The last axis of x times a matrix I,O or O,I that is a value without rows.
Result<Value> computed_linear(Mapper& m, const Value& x, const Value& weight, bool io) {
  const Shape shape = ir_shape(x.layout);
  Layout out = x.layout;
  out.dims.back() = weight.layout.dims[io ? 1 : 0];
  int64_t places = 1;
  for (size_t i = 1; i + 1 < shape.size(); ++i) places *= shape[i];
  const std::string rows = m.graph.reshape(x.name, {shape[0], places, shape.back()});
  const std::string matrix = io ? weight.name : m.graph.transpose(weight.name, {0, 2, 1});
  const std::string made = m.graph.node("matmul", {rows, matrix}, {shape[0], places, out.dims.back()});
  return Value{.name = m.graph.reshape(made, ir_shape(out)), .layout = out};
}

}  // namespace

Result<Value> linear(Mapper& m, const Value& x, const Value& weight, const Value& bias, bool io) {
  if (!x.is_graph() || x.layout.rank() == 0 || x.layout.holds_batch(x.layout.rank() - 1))
    return refused("multiplies along the batch");
  if (rank_of(weight) != 2) return refused("its weight is no matrix");
  if (weight.is_graph() ? weight.layout.n != kNone : !weight.fixed())
    return refused("its weight is computed from the inputs");
  const Shape sizes = m.shape_at(weight, 0);
  if (sizes[io ? 0 : 1] != x.layout.dims.back()) return refused("its sizes do not fit");
  if (ir_shape(x.layout).size() < 2) return refused("needs an axis after the batch");
  const Value oi = io && weight.is_const() ? with_array(weight, transposed(*weight.at[0], {1, 0})) : weight;
  if (weight.is_graph() || (oi.at[0]->has_origins() && !m.fits_slot(*oi.at[0])) || bias.is_graph()) {
    if (weight.is_const()) m.note_reader(ir_word(m.source(weight)));
    TRY(const Value matrix, weight.is_graph() ? Result<Value>(weight) : m.as_value(weight));
    TRY(const Value made, computed_linear(m, x, matrix, io));
    return bias.absent() ? made : m.elementwise("add", {made, bias});
  }
  Params params;
  TRY(const std::string w, m.weight(oi, "weight"));
  params.emplace_back("weight", w);
  if (!bias.absent()) {
    TRY(const std::string b, m.weight(bias, "bias"));
    params.emplace_back("bias", b);
  }
  Value rows = x;
  rows.layout.dims.back() = sizes[io ? 1 : 0];
  return m.make("linear", {x.name}, rows.layout, {}, params);
}

// Batched, of two values of the graph (one may be a constant).
Result<Value> product(Mapper& m, Value a, Value b) {
  for (Value* v : {&a, &b}) {
    const size_t rank = rank_of(*v);
    if (rank < 2) return refused("multiplies a vector");
    m.train_everywhere(*v);
    if (v->is_graph() && v->layout.n >= static_cast<int>(rank) - 2)
      return refused("multiplies along the batch");
  }
  const auto dims = [](const Value& v) -> const Shape& {
    return v.is_const() ? v.at[0]->shape : v.layout.dims;
  };
  const Shape da = dims(a), db = dims(b);
  if (da.back() != db[db.size() - 2]) return refused("its sizes do not fit");
  // The leading axes broadcast; for that the last two are made alike.
  const auto leading = [](Value v) {
    if (v.is_const()) {
      for (ArrayPtr& at : v.at) {
        Shape shape = at->shape;
        const size_t r = shape.size();
        shape[r - 2] = shape[r - 1] = 1;
        at = filled(Kind::kFloat, shape, 0);
      }
    } else {
      v.layout.dims[v.layout.rank() - 1] = v.layout.dims[v.layout.rank() - 2] = 1;
    }
    return v;
  };
  TRY(Layout out, m.broadcast_layout({leading(a), leading(b)}));
  const size_t rank = out.rank();
  std::string names[2];
  for (int i = 0; i < 2; ++i) {
    const Value& v = i == 0 ? a : b;
    Layout wanted = out;
    wanted.dims[rank - 2] = dims(v)[dims(v).size() - 2];
    wanted.dims[rank - 1] = dims(v).back();
    TRY(names[i], m.operand(v, wanted));
    if (m.graph.shape(names[i]).empty()) return refused("multiplies by a matrix of one constant");
  }
  out.dims[rank - 2] = da[da.size() - 2];
  out.dims[rank - 1] = db.back();
  if (ir_shape(out).size() < 3) return refused("multiplies rows of the batch with one another");
  return m.make("matmul", {names[0], names[1]}, out);
}

namespace {

// ---- products

// A weight, not a value of the inputs.
bool is_matrix(const Value& v) { return rank_of(v) == 2 && (v.is_const() || v.layout.n == kNone); }

Value without_axis(Mapper& m, const Value& v, size_t from_end) {
  Layout out = v.layout;
  const size_t at = out.rank() - from_end;
  out.dims.erase(out.dims.begin() + static_cast<int64_t>(at));
  if (out.n > static_cast<int>(at)) --out.n;
  return m.reshaped(v, out);
}

Result<Values> mat_mul(Mapper& m, const Call& call) {
  Value a = call.in(0), b = call.in(1);
  if (a.is_graph() && is_matrix(b) && (b.is_const() || a.layout.n != kNone)) {
    TRY(const Value made, linear(m, a, b, {}, true));
    return Values{made};
  }
  if (rank_of(a) == 0 || rank_of(b) == 0) return refused("multiplies a scalar");
  const bool row = rank_of(a) == 1, column = rank_of(b) == 1;
  if (row) a = with_axis(m, a, 0);
  if (column) b = with_axis(m, b, 1);
  TRY(Value made, product(m, a, b));
  if (column) made = without_axis(m, made, 1);
  if (row) made = without_axis(m, made, column ? 1 : 2);
  return Values{made};
}

Result<Values> gemm(Mapper& m, const Call& call) {
  Value a = call.in(0), b = call.in(1), c = call.in(2);
  const double alpha = call.real("alpha", 1), beta = call.real("beta", 1);
  for (const Value& v : {a, b})
    if (v.is_graph() && rank_of(v) != 2) return refused("multiplies what is no matrix");
  if (call.integer("transA", 0) != 0) {
    if (!a.is_graph() || a.layout.n >= 0) return refused("multiplies along the batch (transA)");
    a = m.transposed_value(a, {1, 0});
  }
  const bool transposed_b = call.integer("transB", 0) != 0;
  Value made;
  const bool layer = a.is_graph() && is_matrix(b) && (b.is_const() || a.layout.n != kNone);
  const bool fused = layer && alpha == 1 && beta == 1 && c.is_const() && c.fixed() &&
                     c.at[0]->shape.size() <= 2 &&
                     static_cast<int64_t>(c.at[0]->size()) == m.shape_at(b, 0)[transposed_b ? 0 : 1] &&
                     (!c.at[0]->has_origins() || m.fits_slot(*c.at[0]));
  if (layer) {
    if (fused && c.at[0]->shape.size() != 1)
      c = with_array(c, shaped(*c.at[0], {static_cast<int64_t>(c.at[0]->size())}));
    TRY(made, linear(m, a, b, fused ? c : Value{}, !transposed_b));
  } else {
    if (transposed_b && rank_of(b) == 2)
      b = b.is_graph() ? m.transposed_value(b, {1, 0}) : with_array(b, transposed(*b.at[0], {1, 0}));
    TRY(made, product(m, a, b));
  }
  if (fused) return Values{made};
  if (alpha != 1) {
    TRY(made, m.scalar_op("mul", made, alpha));
  }
  if (c.absent() || beta == 0) return Values{made};
  if (beta != 1) {
    if (m.tracked(c)) {
      TRY(c, m.as_value(c));
    }
    if (c.is_graph()) {
      TRY(c, m.scalar_op("mul", c, beta));
    } else {
      Array scaled = *without_origins(c.at[0]);
      for (double& x : scaled.reals) x *= beta;
      c = m.constant(std::make_shared<Array>(std::move(scaled)));
    }
  }
  TRY(made, m.elementwise("add", {made, c}));
  return Values{made};
}

// ---- einsum

// An operand with the letters of its axes.
struct Term {
  Value value;
  std::string letters;
};

Value permuted(Mapper& m, const Value& v, const Ints& perm) {
  if (v.is_graph()) return m.transposed_value(v, perm);
  Value made = v;
  for (ArrayPtr& at : made.at) at = transposed(*at, perm);
  return made;
}

// In the order of `letters`, which has the same ones.
Value ordered(Mapper& m, const Term& term, const std::string& letters) {
  Ints perm;
  for (const char c : letters) perm.push_back(static_cast<int64_t>(term.letters.find(c)));
  return permuted(m, term.value, perm);
}

// Letters that are missing as axes of size 1.
Value widened(Mapper& m, Term term, const std::string& letters) {
  std::string own;
  for (const char c : letters) {
    if (term.letters.find(c) != std::string::npos) own += c;
  }
  Value v = ordered(m, term, own);
  for (size_t i = 0; i < letters.size(); ++i) {
    if (own.find(letters[i]) == std::string::npos) v = with_axis(m, v, i);
  }
  return v;
}

// A letter twice is the diagonal: the elements of a mask of ones, summed over one of the two axes.
Result<Term> on_diagonals(Mapper& m, Term term) {
  for (size_t i = 0; i < term.letters.size(); ++i) {
    const size_t again = term.letters.find(term.letters[i], i + 1);
    if (again == std::string::npos) continue;
    if (!term.value.is_graph()) return refused("takes the diagonal of a constant");
    const Layout& layout = term.value.layout;
    if (layout.holds_batch(i) || layout.holds_batch(again)) return refused("takes a diagonal of the batch");
    const int64_t size = layout.dims[i];
    if (layout.dims[again] != size) return refused("its sizes do not fit");
    Shape shape(layout.rank(), 1);
    shape[i] = shape[again] = size;
    Array mask{.kind = Kind::kFloat, .shape = shape};
    for (int64_t k = 0; k < size * size; ++k) mask.reals.push_back(k / size == k % size ? 1 : 0);
    TRY(const Value kept,
        m.elementwise("mul", {term.value, m.constant(std::make_shared<Array>(std::move(mask)))}));
    TRY(term.value, reduced(m, kept, {again}, false, "sum"));
    term.letters.erase(again, 1);
    --i;
  }
  return term;
}

// Sums over letters that stand in this operand alone.
Result<Term> summed(Mapper& m, Term term, const std::string& kept) {
  std::set<size_t> gone;
  std::string left;
  for (size_t i = 0; i < term.letters.size(); ++i) {
    if (kept.find(term.letters[i]) == std::string::npos)
      gone.insert(i);
    else
      left += term.letters[i];
  }
  if (gone.empty()) return term;
  if (!term.value.is_graph()) return refused("sums a constant alone");
  TRY(term.value, reduced(m, term.value, gone, false, "sum"));
  term.letters = left;
  return term;
}

Value merged(Mapper& m, const Value& v, size_t first, size_t count) {
  const auto joined_dims = [&](Shape dims) {
    int64_t size = 1;
    for (size_t i = 0; i < count; ++i) size *= dims[first + i];
    dims.erase(dims.begin() + static_cast<int64_t>(first),
               dims.begin() + static_cast<int64_t>(first + count));
    dims.insert(dims.begin() + static_cast<int64_t>(first), size);
    return dims;
  };
  if (v.is_const()) {
    Value made = v;
    for (ArrayPtr& at : made.at) at = shaped(*at, joined_dims(at->shape));
    return made;
  }
  Layout out = v.layout;
  out.dims = joined_dims(out.dims);
  if (out.n >= static_cast<int>(first + count)) out.n -= static_cast<int>(count) - 1;
  return m.reshaped(v, out);
}

// Of two operands: letters of both and of the result lead, those of both alone are contracted by one product.
Result<Term> contracted(Mapper& m, const Term& a, const Term& b, const std::string& rest) {
  std::string both, inner, left, right;
  const auto has = [](const std::string& text, char c) { return text.find(c) != std::string::npos; };
  for (const char c : a.letters) (!has(b.letters, c) ? left : has(rest, c) ? both : inner) += c;
  for (const char c : b.letters) {
    if (!has(a.letters, c)) right += c;
  }
  if (inner.empty()) {
    const std::string all = both + left + right;
    TRY(const Value made, m.elementwise("mul", {widened(m, a, all), widened(m, b, all)}));
    return Term{made, all};
  }
  const auto batch_in = [&](const Term& t, const std::string& letters) {
    return t.value.is_graph() && t.value.layout.n >= 0 &&
           has(letters, t.letters[static_cast<size_t>(t.value.layout.n)]);
  };
  if (batch_in(a, inner) || batch_in(b, inner)) return refused("sums over the batch");
  if (batch_in(a, left) || batch_in(b, right)) {  // the batch leads a product
    const bool first = batch_in(a, left);
    std::string& side = first ? left : right;
    if (first ? b.value.is_graph() : a.value.is_graph()) return refused("rows of the batch meet");
    const Term& term = first ? a : b;
    const char n = term.letters[static_cast<size_t>(term.value.layout.n)];
    side.erase(side.find(n), 1);
    both = n + both;
  }
  const auto laid = [&](const Term& t, const std::string& one, const std::string& two) {
    const Value wide = widened(m, t, both + one + two);
    const Value half = merged(m, wide, both.size() + one.size(), two.size());
    return merged(m, half, both.size(), one.size());
  };
  const Value x = laid(a, left, inner), y = laid(b, inner, right);
  TRY(const Value made, product(m, x, y));
  // The merged axes apart again.
  Layout out = made.layout;
  out.dims.resize(both.size());
  const auto size_of = [&](const Term& t, char c) {
    const size_t at = t.letters.find(c);
    return t.value.is_const() ? t.value.at[0]->shape[at] : t.value.layout.dims[at];
  };
  for (const char c : left) out.dims.push_back(size_of(a, c));
  for (const char c : right) out.dims.push_back(size_of(b, c));
  return Term{m.reshaped(made, out), both + left + right};
}

// The letters of each operand and of the result, "..." as capital letters.
Result<std::pair<std::vector<std::string>, std::string>> equation_of(const Call& call) {
  std::string text;
  for (const char c : call.text("equation", "")) {
    if (c != ' ') text += c;
  }
  const size_t arrow = text.find("->");
  std::vector<std::string> terms(1);
  for (const char c : text.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != call.inputs.size()) return refused("its equation does not fit");
  size_t most = 0;
  const auto more = [&](size_t i) { return rank_of(call.inputs[i]) + 3 - terms[i].size(); };
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].find("...") == std::string::npos) continue;
    if (rank_of(call.inputs[i]) + 3 < terms[i].size()) return refused("its equation does not fit");
    most = std::max(most, more(i));
  }
  if (most > 26) return refused("its equation does not fit");
  const auto filled_in = [](std::string term, size_t skip, size_t end) {
    const size_t dots = term.find("...");
    if (dots == std::string::npos) return term;
    std::string letters;
    for (size_t i = skip; i < end; ++i) letters += static_cast<char>('A' + i);
    return term.replace(dots, 3, letters);
  };
  std::map<char, int> seen;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos)
      return refused("its equation has capital letters");
    const bool dots = terms[i].find("...") != std::string::npos;
    terms[i] = filled_in(terms[i], dots ? most - more(i) : 0, most);
    if (terms[i].size() != rank_of(call.inputs[i])) return refused("its equation does not fit");
    for (const char c : terms[i]) ++seen[c];
  }
  std::string result;
  if (arrow != std::string::npos) return std::pair{terms, filled_in(text.substr(arrow + 2), 0, most)};
  for (const auto& [c, times] : seen) {  // letters that stand once, in their order; "..." first
    if (times == 1 || c <= 'Z') result += c;
  }
  return std::pair{terms, result};
}

Result<Values> einsum(Mapper& m, const Call& call) {
  TRY(const auto equation, equation_of(call));
  const auto& [letters, result] = equation;
  std::vector<Term> terms;
  for (size_t i = 0; i < letters.size(); ++i) {
    TRY(Term term, on_diagonals(m, {call.inputs[i], letters[i]}));
    std::string kept = result;
    for (size_t j = 0; j < letters.size(); ++j) kept += j == i ? "" : letters[j];
    TRY(term, summed(m, term, kept));
    terms.push_back(std::move(term));
  }
  while (terms.size() > 1) {
    std::string rest = result;
    for (size_t j = 2; j < terms.size(); ++j) rest += terms[j].letters;
    TRY(Term both, contracted(m, terms[0], terms[1], rest));
    TRY(both, summed(m, both, rest));
    terms.erase(terms.begin());
    terms[0] = std::move(both);
  }
  if (terms[0].letters.size() != result.size()) return refused("its result has letters that no operand has");
  return Values{ordered(m, terms[0], result)};
}

// ---- norms

Result<std::string> norm_parameter(Mapper& m, const Value& v, const char* slot, const Shape& shape,
                                   double fallback) {
  if (v.absent()) return m.frozen(m.graph.base + "." + slot, filled(Kind::kFloat, shape, fallback));
  if (!v.is_const()) return refused(fmt::format("its {} is computed from the inputs", slot));
  // What an exporter writes for a norm without weights.
  const bool filler = !m.tracked(v) && m.made_by_exporter(v) &&
                      std::ranges::all_of(v.at[0]->reals, [&](double x) { return x == fallback; });
  if (static_cast<int64_t>(v.at[0]->size()) == tensor::elements(shape))
    return m.weight(with_array(v, shaped(*v.at[0], shape)), slot, !filler);
  return refused(fmt::format("its {} is of shape {}", slot, tensor::to_text(v.at[0]->shape)));
}

// N in front alone, then the channels, then all other axes as one: of rows that the batch is merged with, too.
Result<Value> channels_second(Mapper& m, const Value& x, Ints& perm) {
  const Shape shape = ir_shape(x.layout);
  perm.resize(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  const int64_t at = ir_axis(x.layout, 1);
  std::rotate(perm.begin() + 1, perm.begin() + at, perm.begin() + at + 1);
  const int64_t channels = x.layout.dims[1], places = tensor::elements(x.layout.dims) / channels;
  const Layout out{.dims = {1, channels, 1, places}, .n = 0};
  return Value{.name = m.graph.reshape(m.graph.transpose(x.name, perm), ir_shape(out)), .layout = out};
}

Value channels_back(Mapper& m, const Value& made, const Value& x, const Ints& perm) {
  const Shape shape = ir_shape(x.layout);
  Shape moved;
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    moved.push_back(shape[static_cast<size_t>(perm[i])]);
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return Value{.name = m.graph.transpose(m.graph.reshape(made.name, moved), inverse), .layout = x.layout};
}

Result<Value> scaled(Mapper& m, const Value& x, const Value& scale, const Value& bias) {
  Value made = x;
  if (!scale.absent()) {
    TRY(made, m.elementwise("mul", {made, scale}));
  }
  if (!bias.absent()) {
    TRY(made, m.elementwise("add", {made, bias}));
  }
  return made;
}

// By statistics that are constants, of channels that N is merged with: torch exports instance norms with running
// statistics so, in evaluation mode.
Result<Values> still_norm(Mapper& m, const Call& call) {
  if (call.integer("training_mode", 0) != 0)
    return refused("takes each row's own statistics in training, and running ones in inference");
  Values parts = {call.in(1), call.in(2), call.in(3), call.in(4)};
  for (size_t i = 0; i < 4; ++i) {
    if (!parts[i].is_const()) return refused("its statistics or weights are computed from the inputs");
    for (ArrayPtr& at : parts[i].at) {
      Shape shape(call.in(0).layout.rank(), 1);
      shape[1] = static_cast<int64_t>(at->size());
      at = shaped(i < 2 ? *at : *without_origins(at), shape);
    }
  }
  for (ArrayPtr& at : parts[3].at) {
    Array factor = *at;
    for (double& x : factor.reals) x = 1 / std::sqrt(x + call.real("epsilon", 1e-5));
    at = std::make_shared<Array>(std::move(factor));
  }
  TRY(const Value centred, m.elementwise("sub", {call.in(0), parts[2]}));
  TRY(const Value normal, m.elementwise("mul", {centred, parts[3]}));
  TRY(const Value made, scaled(m, normal, parts[0], parts[1]));
  return Values{made};
}

Result<Values> batch_norm(Mapper& m, const Call& call) {
  if (call.in(0).is_graph() && call.in(0).layout.holds_batch(1)) return still_norm(m, call);
  if (call.in(0).is_graph() && call.in(0).layout.n == 0 && !call.in(0).layout.plain()) {
    Ints perm;
    Call inner = call;
    TRY(inner.inputs[0], channels_second(m, call.in(0), perm));
    TRY(const Values made, batch_norm(m, inner));
    return Values{channels_back(m, made[0], call.in(0), perm)};
  }
  TRY(const Value x, m.rows_first(call.in(0)));
  if (call.opset < 9 && call.integer("spatial", 1) == 0)
    return refused("normalises every pixel apart (spatial = 0)");
  const size_t rank = x.layout.rank();
  if (rank < 2) return refused("its sizes do not fit");
  const int64_t channels = x.layout.dims[1];
  Params params;
  const char* slots[] = {"weight", "bias", "mean", "var"};
  for (size_t i = 0; i < 4; ++i) {
    const Value& v = call.in(i + 1);
    if (!v.is_const() || v.at[0]->shape != Shape{channels})
      return refused(fmt::format("its {} is no constant of the channels", slots[i]));
    TRY(const std::string name, m.weight(v, slots[i]));
    params.emplace_back(slots[i], name);
  }
  for (size_t i = 1; i < 5; ++i) {
    if (call.wants(i) && call.opset >= 14) {
      m.notes.insert("batch norms are in training mode in the file; the proof is of inference");
    }
  }
  // ONNX: the weight of the old statistics; the IR: that of the new batch.
  const double momentum = 1 - call.real("momentum", 0.9);
  Layout shape = x.layout;
  if (rank != 2 && rank != 4) {  // pixels in one row
    int64_t pixels = 1;
    for (size_t i = 2; i < rank; ++i) pixels *= x.layout.dims[i];
    shape.dims = {1, channels, 1, pixels};
  }
  const Value flat = m.reshaped(x, shape);
  const Value made = m.make("batch_norm", {flat.name}, shape,
                            {{"eps", real_text(call.real("epsilon", 1e-5))},
                             {"momentum", fmt::format("{}", std::round(momentum * 1e9) / 1e9)}},
                            params);
  return Values{m.as_before(m.reshaped(made, x.layout), call.in(0))};
}

Result<Values> layer_norm(Mapper& m, const Call& call, const char* op) {
  const Value& x = call.in(0);
  if (!x.is_graph()) return refused("its input is a constant");
  const size_t rank = x.layout.rank();
  TRY(const size_t axis, axis_of(call.integer("axis", -1), rank));
  if (x.layout.n >= static_cast<int>(axis)) return refused("normalises over the batch");
  const Shape tail(x.layout.dims.begin() + static_cast<int64_t>(axis), x.layout.dims.end());
  const bool rms = std::string(op) == "rms_norm";
  Params params;
  const char* slots[] = {"weight", "bias"};
  const bool computed = call.in(1).is_graph() || call.in(2).is_graph();
  for (size_t i = 0; i < (rms ? 1u : 2u); ++i) {
    if (computed) m.train_everywhere(call.in(i + 1));
    if (computed || !call.has(i + 1)) continue;
    TRY(const std::string name, norm_parameter(m, call.in(i + 1), slots[i], tail, i == 0 ? 1 : 0));
    params.emplace_back(slots[i], name);
  }
  const double eps = call.real("epsilon", 1e-5);
  Values made = {m.make(op, {x.name}, x.layout,
                        {{"dims", std::to_string(rank - axis)}, {"eps", real_text(eps)}}, params)};
  if (computed) {
    TRY(made[0], scaled(m, made[0], call.in(1), call.in(2)));
  }
  if (!call.wants(1) && !call.wants(2)) return made;
  Layout small = x.layout;
  Ints axes;
  for (size_t i = axis; i < rank; ++i) {
    small.dims[i] = 1;
    axes.push_back(ir_axis(x.layout, i));
  }
  const Attributes over = {{"axes", numbers_text(axes)}, {"keepdims", "true"}};
  made.push_back(m.make("mean", {x.name}, small, over));
  TRY(const Value centred, m.elementwise("sub", {x, made[1]}));
  TRY(const Value square, m.elementwise("square", {centred}));
  TRY(const Value moved, m.scalar_op("add", m.make("mean", {square.name}, small, over), eps));
  TRY(const Value factor, m.elementwise("rsqrt", {moved}));
  made.push_back(factor);
  return made;
}

// Normalises axes: (x - mean) / sqrt(var + eps), where the IR has no op for it.
Result<Value> normalised(Mapper& m, const Value& x, const Ints& ir_axes, double eps) {
  Layout small = x.layout;
  for (size_t i = 0; i < small.rank(); ++i) {
    if (!small.holds_batch(i) && std::count(ir_axes.begin(), ir_axes.end(), ir_axis(x.layout, i)) > 0)
      small.dims[i] = 1;
  }
  const Attributes over = {{"axes", numbers_text(ir_axes)}, {"keepdims", "true"}};
  const Value mean = m.make("mean", {x.name}, small, over);
  TRY(const Value centred, m.elementwise("sub", {x, mean}));
  TRY(const Value square, m.elementwise("square", {centred}));
  const Value variance = m.make("mean", {square.name}, small, over);
  TRY(const Value moved, m.scalar_op("add", variance, eps));
  TRY(const Value factor, m.elementwise("rsqrt", {moved}));
  return m.elementwise("mul", {centred, factor});
}

// Channels in groups; instance norm is as many groups as channels.
Result<Values> group_norm(Mapper& m, const Call& call) {
  TRY(const Value x, m.rows_first(call.in(0)));
  const size_t rank = x.layout.rank();
  if (rank < 3 && call.op() == "InstanceNormalization") return refused("its sizes do not fit");
  const int64_t channels = x.layout.dims[1];
  const bool instance = call.op() == "InstanceNormalization";
  const int64_t groups = instance ? channels : call.integer("num_groups", 1);
  if (groups < 1 || channels % groups != 0) return refused("its groups do not fit");
  const double eps = call.real("epsilon", 1e-5);
  const bool by_group = !instance && call.opset < 21;  // scale and bias of groups
  if (!by_group && ir::find_op("group_norm") != nullptr && call.in(1).is_const() && call.in(2).is_const()) {
    Params params;
    TRY(const std::string weight, norm_parameter(m, call.in(1), "weight", {channels}, 1));
    TRY(const std::string bias, norm_parameter(m, call.in(2), "bias", {channels}, 0));
    params = {{"weight", weight}, {"bias", bias}};
    return Values{m.as_before(m.make("group_norm", {x.name}, x.layout,
                                     {{"groups", std::to_string(groups)}, {"eps", real_text(eps)}}, params),
                              call.in(0))};
  }
  Layout grouped{.dims = {1, groups, -1}, .n = 0};
  grouped.dims[2] = tensor::elements(x.layout.dims) / groups;
  TRY(const Value flat, normalised(m, m.reshaped(x, grouped), {2}, eps));
  Layout cut = x.layout;
  const auto per_channel = [&](const Value& v) -> Result<Value> {
    if (!v.is_const()) return refused("its scale or bias is computed from the inputs");
    Shape shape(rank - 1, 1);
    shape[0] = channels;
    if (by_group) {
      TRY(const ArrayPtr wide, expanded(shaped(*v.at[0], {groups, 1}), {groups, channels / groups}));
      return with_array(Value{}, shaped(*wide, shape));
    }
    if (static_cast<int64_t>(v.at[0]->size()) != channels) return refused("its sizes do not fit");
    return with_array(v, shaped(*v.at[0], shape));
  };
  TRY(const Value scale, per_channel(call.in(1)));
  TRY(const Value bias, per_channel(call.in(2)));
  TRY(const Value made, scaled(m, m.reshaped(flat, cut), scale, bias));
  return Values{m.as_before(made, call.in(0))};
}

Result<Values> rms_norm(Mapper& m, const Call& call) {
  if (call.in(1).absent() || call.in(1).is_const()) return layer_norm(m, call, "rms_norm");
  const Value& x = call.in(0);
  if (!x.is_graph()) return refused("its input is a constant");
  TRY(const size_t axis, axis_of(call.integer("axis", -1), x.layout.rank()));
  if (x.layout.n >= static_cast<int>(axis)) return refused("normalises over the batch");
  Layout small = x.layout;
  Ints axes;
  for (size_t i = axis; i < x.layout.rank(); ++i) {
    small.dims[i] = 1;
    axes.push_back(ir_axis(x.layout, i));
  }
  TRY(const Value square, m.elementwise("square", {x}));
  const Value mean =
      m.make("mean", {square.name}, small, {{"axes", numbers_text(axes)}, {"keepdims", "true"}});
  TRY(const Value moved, m.scalar_op("add", mean, call.real("epsilon", 1e-5)));
  TRY(const Value factor, m.elementwise("rsqrt", {moved}));
  TRY(const Value made, m.elementwise("mul", {x, factor}));
  TRY(const Value result, scaled(m, made, call.in(1), {}));
  return Values{result};
}

Result<Values> lrn(Mapper& m, const Call& call) {
  TRY(const Value x, m.rows_first(call.in(0)));
  if (x.layout.rank() != 4) return refused("its sizes do not fit");
  const int64_t size = call.integer("size", 1);
  if (size < 1) return refused("its size does not fit");
  if (size % 2 == 0) return refused("its size is even: ONNX and the IR begin at different channels");
  // ONNX divides alpha by the size, as torch does.
  const double alpha = call.real("alpha", 1e-4) / static_cast<double>(size);
  return Values{m.as_before(m.make("lrn", {x.name}, x.layout,
                                   {{"size", std::to_string(size)},
                                    {"alpha", real_text(alpha)},
                                    {"beta", real_text(call.real("beta", 0.75))},
                                    {"k", real_text(call.real("bias", 1))}}),
                            call.in(0))};
}

Result<Values> mean_variance_norm(Mapper& m, const Call& call) {
  const Value& x = call.in(0);
  if (!x.is_graph()) return refused("its input is a constant");
  Ints axes;
  for (const int64_t axis : call.integers("axes", {0, 2, 3})) {
    TRY(const size_t at, axis_of(axis, x.layout.rank()));
    if (x.layout.holds_batch(at)) return refused("normalises over the batch");
    axes.push_back(ir_axis(x.layout, at));
  }
  std::sort(axes.begin(), axes.end());
  TRY(const Value made, normalised(m, x, axes, 1e-18));
  return Values{made};
}

Result<Values> lp_norm(Mapper& m, const Call& call) {
  const Value& x = call.in(0);
  if (!x.is_graph()) return refused("its input is a constant");
  TRY(const size_t axis, axis_of(call.integer("axis", -1), x.layout.rank()));
  if (x.layout.holds_batch(axis)) return refused("normalises over the batch");
  const bool square = call.integer("p", 2) == 2;
  Layout small = x.layout;
  small.dims[axis] = 1;
  TRY(const Value terms, m.elementwise(square ? "square" : "abs", {x}));
  Value sum = m.make("sum", {terms.name}, small,
                     {{"axes", std::to_string(ir_axis(x.layout, axis))}, {"keepdims", "true"}});
  if (square) {
    TRY(sum, m.elementwise("sqrt", {sum}));
  }
  TRY(sum, m.scalar_op("maximum", sum, 1e-30));  // 0 / 0 is 0
  TRY(const Value made, m.elementwise("div", {x, sum}));
  return Values{made};
}

}  // namespace

Rows layer_rows() {
  return {
      {"MatMul", mat_mul},
      {"Gemm", gemm},
      {"Einsum", einsum},
      {"BatchNormalization", batch_norm},
      {"LayerNormalization", +[](Mapper& m, const Call& c) { return layer_norm(m, c, "layer_norm"); }},
      {"RMSNormalization", rms_norm},
      {"GroupNormalization", group_norm},
      {"InstanceNormalization", group_norm},
      {"MeanVarianceNormalization", mean_variance_norm},
      {"LpNormalization", lp_norm},
      {"LRN", lrn},
  };
}

}  // namespace bakeoff::onnx
