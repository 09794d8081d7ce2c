#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/op_table.h"
#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

// ---- products

Value with_array(const Value& v, ArrayPtr array) {
  Value made = v;
  made.at[0] = made.at[1] = std::move(array);
  return made;
}

Result<Value> matrix_transposed(const Value& v) {
  if (!v.is_const() || !v.fixed()) return refused("its weight is computed from the inputs");
  if (v.at[0]->shape.size() != 2) return refused("its weight is no matrix");
  return with_array(v, transposed(*v.at[0], {1, 0}));
}

// x W^T + b on the last axis.
Result<Value> linear(Mapper& m, const Value& x, const Value& weight_oi, const Value& bias) {
  if (!x.is_graph() || x.layout.rank() == 0 || x.layout.holds_batch(x.layout.rank() - 1))
    return refused("multiplies along the batch");
  const int64_t features = weight_oi.at[0]->shape[0];
  if (weight_oi.at[0]->shape[1] != x.layout.dims.back()) return refused("its sizes do not fit");
  Params params;
  TRY(const std::string w, m.weight(weight_oi, "weight"));
  params.emplace_back("weight", w);
  if (!bias.absent()) {
    TRY(const std::string b, m.weight(bias, "bias"));
    params.emplace_back("bias", b);
  }
  Value rows = x;
  if (ir_shape(x.layout).size() < 2) return refused("needs an axis after the batch");
  rows.layout.dims.back() = features;
  return m.make("linear", {x.name}, rows.layout, {}, params);
}

// Batched, of two values of the graph (one may be a constant).
Result<Value> product(Mapper& m, Value a, Value b) {
  for (Value* v : {&a, &b}) {
    const size_t rank = v->is_const() ? v->at[0]->shape.size() : v->layout.rank();
    if (rank < 2) return refused("multiplies a vector");
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

Value with_axis(Mapper& m, const Value& v, bool last) {
  if (v.is_const()) {
    Shape shape = v.at[0]->shape;
    shape.insert(last ? shape.end() : shape.end() - 1, 1);
    return with_array(v, shaped(*v.at[0], shape));
  }
  Layout out = v.layout;
  const size_t at = last ? out.rank() : out.rank() - 1;
  if (out.n >= static_cast<int>(at)) ++out.n;
  out.dims.insert(out.dims.begin() + static_cast<int64_t>(at), 1);
  return m.reshaped(v, out);
}

Value without_axis(Mapper& m, const Value& v, size_t from_end) {
  Layout out = v.layout;
  const size_t at = out.rank() - from_end;
  out.dims.erase(out.dims.begin() + static_cast<int64_t>(at));
  if (out.n > static_cast<int>(at)) --out.n;
  return m.reshaped(v, out);
}

size_t rank_of(const Value& v) { return v.is_const() ? v.at[0]->shape.size() : v.layout.rank(); }

Result<Values> mat_mul(Mapper& m, const Call& call) {
  Value a = call.in(0), b = call.in(1);
  if (a.is_graph() && b.is_const() && rank_of(b) == 2) {
    TRY(const Value weight, matrix_transposed(b));
    TRY(const Value made, linear(m, a, weight, {}));
    return Values{made};
  }
  if (rank_of(a) == 0 || rank_of(b) == 0) return refused("multiplies a scalar");
  const bool row = rank_of(a) == 1, column = rank_of(b) == 1;
  if (row) a = with_axis(m, a, false);
  if (column) b = with_axis(m, b, true);
  TRY(Value made, product(m, a, b));
  if (column) made = without_axis(m, made, 1);
  if (row) made = without_axis(m, made, column ? 1 : 2);
  return Values{made};
}

Result<Values> gemm(Mapper& m, const Call& call) {
  Value a = call.in(0), b = call.in(1), c = call.in(2);
  const double alpha = call.real("alpha", 1), beta = call.real("beta", 1);
  if (call.integer("transA", 0) != 0) {
    if (!a.is_graph() || a.layout.n != kAdded) return refused("multiplies along the batch (transA)");
    a = m.transposed_value(a, {1, 0});
  }
  const bool transposed_b = call.integer("transB", 0) != 0;
  Value made;
  const bool layer = a.is_graph() && b.is_const();
  const bool fused = layer && alpha == 1 && beta == 1 && c.is_const() && c.fixed() &&
                     c.at[0]->shape.size() <= 2 && rank_of(b) == 2 &&
                     static_cast<int64_t>(c.at[0]->size()) == b.at[0]->shape[transposed_b ? 0 : 1];
  if (layer) {
    if (!transposed_b) {
      TRY(b, matrix_transposed(b));
    }
    if (fused && c.at[0]->shape.size() != 1)
      c = with_array(c, shaped(*c.at[0], {static_cast<int64_t>(c.at[0]->size())}));
    if (rank_of(b) != 2) return refused("its weight is no matrix");
    TRY(made, linear(m, a, b, fused ? c : Value{}));
  } else {
    if (transposed_b && b.is_graph()) b = m.transposed_value(b, {1, 0});
    if (transposed_b && b.is_const()) {
      TRY(b, matrix_transposed(b));
    }
    TRY(made, product(m, a, b));
  }
  if (fused) return Values{made};
  if (alpha != 1) {
    TRY(made, m.scalar_op("mul", made, alpha));
  }
  if (c.absent() || beta == 0) return Values{made};
  if (beta != 1) {
    if (c.is_graph()) {
      TRY(c, m.scalar_op("mul", c, beta));
    } else {
      Array scaled = *c.at[0];
      for (double& x : scaled.reals) x *= beta;
      c = m.constant(std::make_shared<Array>(std::move(scaled)));
    }
  }
  TRY(made, m.elementwise("add", {made, c}));
  return Values{made};
}

// ---- windows

struct Window {
  Ints kernel, stride, dilation, before, after;  // by spatial axis
  bool ceil = false;
  Ints extra;  // positions beyond the end that rounding up adds
};

Result<Window> window_of(const Call& call, const Shape& dims, Ints kernel) {
  Window w;
  const size_t axes = dims.size() - 2;
  w.kernel = call.integers("kernel_shape", std::move(kernel));
  w.stride = call.integers("strides", Ints(axes, 1));
  w.dilation = call.integers("dilations", Ints(axes, 1));
  w.ceil = call.integer("ceil_mode", 0) != 0;
  Ints pads = call.integers("pads", Ints(2 * axes, 0));
  if (w.kernel.size() != axes || w.stride.size() != axes || w.dilation.size() != axes ||
      pads.size() != 2 * axes)
    return refused("its sizes do not fit");
  const std::string rule = call.text("auto_pad", "NOTSET");
  for (size_t i = 0; i < axes; ++i) {
    if (w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.kernel[i] > (1 << 20) ||
        w.stride[i] > (1 << 20) || w.dilation[i] > (1 << 20))
      return refused("its sizes do not fit");
    const int64_t size = dims[i + 2], span = w.dilation[i] * (w.kernel[i] - 1) + 1;
    int64_t before = pads[i], after = pads[i + axes];
    if (rule == "VALID") before = after = 0;
    if (rule.starts_with("SAME")) {
      const int64_t outputs = (size + w.stride[i] - 1) / w.stride[i];
      const int64_t all = std::max<int64_t>((outputs - 1) * w.stride[i] + span - size, 0);
      before = rule == "SAME_LOWER" ? all - all / 2 : all / 2;
      after = all - before;
    }
    if (std::abs(before) > (1 << 20) || std::abs(after) > (1 << 20)) return refused("its pads do not fit");
    if (before < 0 || after < 0) return refused("its pads are negative");
    int64_t extra = 0;
    if (w.ceil) {
      const int64_t room = size + before + after - span;
      int64_t outputs = (room + w.stride[i] - 1) / w.stride[i] + 1;
      if ((outputs - 1) * w.stride[i] >= size + before) --outputs;  // it would begin in the pad
      extra = std::max<int64_t>((outputs - 1) * w.stride[i] - room, 0);
      if ((outputs - 1) * w.stride[i] + span < size + before + after - (w.stride[i] - 1))
        return refused("its last window is left out");
    }
    w.before.push_back(before);
    w.after.push_back(after + extra);
    w.extra.push_back(extra);
  }
  return w;
}

std::string pad_text(const Window& w) {
  Ints pads;
  for (size_t i = 0; i < w.kernel.size(); ++i) pads.insert(pads.end(), {w.before[i], w.after[i]});
  return numbers_text(pads);
}

Result<int64_t> outputs_of(const Window& w, size_t i, int64_t size) {
  const int64_t span = w.dilation[i] * (w.kernel[i] - 1) + 1, room = size + w.before[i] + w.after[i] - span;
  if (room < 0) return refused("its window is larger than its input");
  return room / w.stride[i] + 1;
}

// A row of pixels is a picture of height 1.
void flatten_window(Window& w) {
  for (Ints* one : {&w.kernel, &w.stride, &w.dilation}) one->insert(one->begin(), 1);
  for (Ints* one : {&w.before, &w.after, &w.extra}) one->insert(one->begin(), 0);
}

// "conv2d" for pictures, "conv3d" for volumes; "" where the IR writes a row of pixels as a picture.
bool lowered_to_2d(size_t axes, const std::string& op) {
  return axes == 1 && ir::find_op(op + "1d") == nullptr;
}

Value lifted(Mapper& m, const Value& x) {  // N,C,L to N,C,1,L
  return m.reshaped(x, {{1, x.layout.dims[1], 1, x.layout.dims[2]}, 0});
}
Value lowered(Mapper& m, const Value& x) {
  return m.reshaped(x, {{1, x.layout.dims[1], x.layout.dims[3]}, 0});
}

// Pads of a transposed convolution, where its output's size is stated; gives what is added to the output.
Result<Ints> transposed_pads(const Call& call, const Shape& dims, Window& w) {
  const size_t rank = dims.size();
  Ints more = call.integers("output_padding", Ints(rank - 2, 0));
  if (more.size() != rank - 2) return refused("its sizes do not fit");
  const Ints sizes = call.integers("output_shape");
  const bool same = call.text("auto_pad", "NOTSET").starts_with("SAME");
  for (size_t i = 0; i < rank - 2; ++i) {
    if (sizes.empty() && !same) continue;
    const int64_t whole = w.stride[i] * (dims[i + 2] - 1) + more[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    const int64_t wanted = sizes.empty() ? dims[i + 2] * w.stride[i] : sizes[sizes.size() - (rank - 2) + i];
    const int64_t all = whole - wanted;
    if (all < 0) return refused("its output is larger than what it computes");
    w.before[i] = call.text("auto_pad", "NOTSET") == "SAME_UPPER" ? all / 2 : all - all / 2;
    w.after[i] = all - w.before[i];
  }
  return more;
}

Result<Values> conv(Mapper& m, const Call& call) {
  TRY(Value x, m.rows_first(call.in(0)));
  Value weight = call.in(1);
  if (!weight.is_const() || !weight.fixed()) return refused("its weight is computed from the inputs");
  const size_t rank = x.layout.rank();
  if (rank < 3 || rank > 5 || rank_of(weight) != rank) return refused("its sizes do not fit");
  const bool transposes = call.op() == "ConvTranspose";
  const int64_t groups = call.integer("group", 1);
  Shape shape = weight.at[0]->shape;
  if (groups < 1 || x.layout.dims[1] != (transposes ? shape[0] : shape[1] * groups))
    return refused("its sizes do not fit");
  TRY(Window w, window_of(call, x.layout.dims, Ints(shape.begin() + 2, shape.end())));
  if (!std::equal(w.kernel.begin(), w.kernel.end(), shape.begin() + 2, shape.end()))
    return refused("kernel_shape is not that of the weight");
  const std::string op = transposes ? "conv_transpose" : "conv";
  Ints more(rank - 2, 0);
  if (transposes) {
    TRY(more, transposed_pads(call, x.layout.dims, w));
  }
  const bool flat = lowered_to_2d(rank - 2, op);
  if (flat) {
    x = lifted(m, x);
    flatten_window(w);
    more.insert(more.begin(), 0);
    shape.insert(shape.begin() + 2, 1);
    weight = with_array(weight, shaped(*weight.at[0], shape));
  }
  Layout out = x.layout;
  out.dims[1] = transposes ? shape[1] * groups : shape[0];
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    if (transposes) {
      out.dims[i + 2] = w.stride[i] * (x.layout.dims[i + 2] - 1) + more[i] +
                        (w.kernel[i] - 1) * w.dilation[i] + 1 - w.before[i] - w.after[i];
      if (out.dims[i + 2] < 1) return refused("its sizes do not fit");
    } else {
      TRY(out.dims[i + 2], outputs_of(w, i, x.layout.dims[i + 2]));
    }
  }
  Params params;
  TRY(const std::string name, m.weight(weight, "weight"));
  params.emplace_back("weight", name);
  if (call.has(2)) {
    TRY(const std::string bias, m.weight(call.in(2), "bias"));
    params.emplace_back("bias", bias);
  }
  Attributes attributes = {{"stride", numbers_text(w.stride)},
                           {"pad", pad_text(w)},
                           {"dilation", numbers_text(w.dilation)},
                           {"groups", std::to_string(groups)}};
  if (transposes) attributes.emplace_back("output_pad", numbers_text(more));
  const Value made = m.make(fmt::format("{}{}d", op, w.kernel.size()), {x.name}, out, attributes, params);
  return Values{m.as_before(flat ? lowered(m, made) : made, call.in(0))};
}

// Constants round a picture.
Value padded(Mapper& m, const Value& x, const Window& w, double value) {
  Ints pads = {0, 0};
  Layout out = x.layout;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    pads.insert(pads.end(), {w.before[i], w.after[i]});
    out.dims[i + 2] += w.before[i] + w.after[i];
  }
  return m.make("pad", {x.name}, out, {{"pad", numbers_text(pads)}, {"value", real_text(value)}});
}

Result<Values> pool(Mapper& m, const Call& call) {
  TRY(Value x, m.rows_first(call.in(0)));
  const size_t rank = x.layout.rank();
  if (rank < 3 || rank > 5) return refused("its sizes do not fit");
  const bool max = call.op() == "MaxPool";
  if (max && call.wants(1)) return refused("the places of the maxima are used");
  TRY(Window w, window_of(call, x.layout.dims, {}));
  const std::string op = max ? "max_pool" : "avg_pool";
  const bool flat = lowered_to_2d(rank - 2, op);
  if (flat) {
    x = lifted(m, x);
    flatten_window(w);
  }
  bool wide = false, extra = false, pads = false;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    if (w.dilation[i] != 1) return refused("its windows have holes (dilations)");
    wide = wide || 2 * std::max(w.before[i], w.after[i]) > w.kernel[i];
    extra = extra || w.extra[i] > 0;
    pads = pads || w.before[i] > 0 || w.after[i] > 0;
  }
  bool counts = call.integer("count_include_pad", 0) != 0;
  if (!max && counts && extra) return refused("a window that rounding up adds counts its pads");
  if (pads && wide) {
    if (!max && !counts) return refused("its pads are more than half of its kernel");
    x = padded(m, x, w, max ? -std::numeric_limits<double>::infinity() : 0);
    for (Ints* one : {&w.before, &w.after}) std::fill(one->begin(), one->end(), 0);
  }
  Layout out = x.layout;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    TRY(out.dims[i + 2], outputs_of(w, i, x.layout.dims[i + 2]));
  }
  Attributes attributes = {
      {"kernel", numbers_text(w.kernel)}, {"stride", numbers_text(w.stride)}, {"pad", pad_text(w)}};
  if (!max) attributes.emplace_back("count_include_pad", counts ? "true" : "false");
  const Value made = m.make(fmt::format("{}{}d", op, w.kernel.size()), {x.name}, out, attributes);
  return Values{m.as_before(flat ? lowered(m, made) : made, call.in(0))};
}

Result<Values> global_pool(Mapper& m, const Call& call, const char* reduction) {
  TRY(const Value x, m.rows_first(call.in(0)));
  const size_t rank = x.layout.rank();
  if (rank < 3) return refused("its sizes do not fit");
  Layout out = x.layout;
  std::fill(out.dims.begin() + 2, out.dims.end(), 1);
  if (rank == 4 && reduction == std::string("mean")) {
    const Value made = m.make("global_avg_pool2d", {x.name}, {{1, out.dims[1]}, 0});
    return Values{m.as_before(m.reshaped(made, out), call.in(0))};
  }
  Ints axes(rank - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return Values{m.as_before(
      m.make(reduction, {x.name}, out, {{"axes", numbers_text(axes)}, {"keepdims", "true"}}), call.in(0))};
}

// (mean |x|^p)^(1/p) times the number of elements^(1/p), by an average that counts pads.
Result<Values> lp_pool(Mapper& m, const Call& call) {
  TRY(const Value x, m.rows_first(call.in(0)));
  const double p = static_cast<double>(call.integer("p", 2));
  const bool global = call.op() == "GlobalLpPool";
  if (x.layout.rank() != 4 || p < 1 || p > 8) return refused("it is of no picture, or of a high power");
  TRY(const Value absolute, m.elementwise("abs", {x}));
  Value terms = absolute;
  for (int i = 1; i < static_cast<int>(p); ++i) {
    TRY(terms, m.elementwise("mul", {terms, absolute}));
  }
  if (global) {
    Layout out = x.layout;
    out.dims[2] = out.dims[3] = 1;
    terms = m.make("sum", {terms.name}, out, {{"axes", "2,3"}, {"keepdims", "true"}});
  } else {
    TRY(const Window w, window_of(call, x.layout.dims, {}));
    const double size = static_cast<double>(w.kernel[0] * w.kernel[1]);
    bool holes = false, extra = false;
    for (size_t i = 0; i < 2; ++i) holes = holes || w.dilation[i] != 1, extra = extra || w.extra[i] > 0;
    if (holes || extra) return refused("its windows have holes, or are rounded up");
    const Value wide = padded(m, terms, w, 0);
    Layout out = wide.layout;
    for (size_t i = 0; i < 2; ++i)
      out.dims[i + 2] = (wide.layout.dims[i + 2] - w.kernel[i]) / w.stride[i] + 1;
    const Value mean = m.make("avg_pool2d", {wide.name}, out,
                              {{"kernel", numbers_text(w.kernel)},
                               {"stride", numbers_text(w.stride)},
                               {"pad", "0,0,0,0"},
                               {"count_include_pad", "true"}});
    TRY(terms, m.scalar_op("mul", mean, size));
  }
  if (p == 1) return Values{m.as_before(terms, call.in(0))};
  TRY(const Value root, p == 2 ? m.elementwise("sqrt", {terms}) : m.scalar_op("pow", terms, 1 / p));
  return Values{m.as_before(root, call.in(0))};
}

// ---- norms

Result<std::string> norm_parameter(Mapper& m, const Value& v, const char* slot, const Shape& shape,
                                   double fallback) {
  if (v.absent()) return m.frozen(m.graph.base + "." + slot, filled(Kind::kFloat, shape, fallback));
  if (!v.is_const()) return refused(fmt::format("its {} is computed from the inputs", slot));
  if (static_cast<int64_t>(v.at[0]->size()) == tensor::elements(shape))
    return m.weight(with_array(v, shaped(*v.at[0], shape)), slot);
  return refused(fmt::format("its {} is of shape {}", slot, tensor::to_text(v.at[0]->shape)));
}

Result<Values> batch_norm(Mapper& m, const Call& call) {
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
  for (size_t i = 0; i < (rms ? 1u : 2u); ++i) {
    if (!call.has(i + 1)) continue;
    TRY(const std::string name, norm_parameter(m, call.in(i + 1), slots[i], tail, i == 0 ? 1 : 0));
    params.emplace_back(slots[i], name);
  }
  const double eps = call.real("epsilon", 1e-5);
  Values made = {m.make(op, {x.name}, x.layout,
                        {{"dims", std::to_string(rank - axis)}, {"eps", real_text(eps)}}, params)};
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

// ---- sequences

// Rows of gates in another order: `order` of the blocks of ONNX.
ArrayPtr gates(const Array& array, const Ints& order) {
  const auto blocks = static_cast<int64_t>(order.size());
  const int64_t units = array.shape[0] / blocks;
  std::vector<ArrayPtr> parts;
  for (const int64_t one : order) parts.push_back(sliced(array, 0, one * units, units));
  return joined(parts, 0);
}

struct Recurrent {
  const char* op;
  int64_t gates;
  Ints order;  // ours, as places in ONNX's
};

Status check_recurrent(Mapper&, const Call& call, const Recurrent& r) {
  const Value& x = call.in(0);
  if (!x.is_graph() || x.layout.rank() != 3) return refused("its input is no sequence");
  const int batch = call.integer("layout", 0) == 0 ? 1 : 0;
  if (x.layout.n != batch || !x.layout.plain()) return refused("the batch is not where it reads it");
  if (call.has(4)) return refused("rows have lengths of their own (sequence_lens)");
  for (const size_t i : {size_t{5}, size_t{6}}) {
    if (!call.has(i) || i > (std::string(r.op) == "lstm" ? 6u : 5u)) continue;
    const Value& state = call.in(i);
    const bool zero = state.is_const() && std::all_of(state.at[0]->reals.begin(), state.at[0]->reals.end(),
                                                      [](double v) { return v == 0; });
    if (!zero) return refused("it begins in a state that is not 0");
  }
  if (call.has(7)) return refused("it has peepholes");
  if (call.has_attribute("clip")) return refused("its cells are clipped");
  if (call.integer("input_forget", 0) != 0) return refused("its input gate is coupled to the forget gate");
  if (call.has_attribute("activations")) {
    const auto& names = call.attributes.at("activations")->strings();
    const std::vector<std::string> usual = std::string(r.op) == "lstm"
                                               ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                               : std::vector<std::string>{"Sigmoid", "Tanh"};
    for (int i = 0; i < names.size(); ++i) {
      if (names[i] != usual[static_cast<size_t>(i) % usual.size()])
        return refused("its activations are not the usual");
    }
  }
  if (std::string(r.op) == "lstm" && call.wants(2)) return refused("its last cell state is used");
  if (std::string(r.op) == "gru" && call.integer("linear_before_reset", 0) == 0)
    return refused("its reset gate acts before the product (linear_before_reset = 0)");
  return Done{};
}

// The part of one direction.
ArrayPtr direction_of(const Array& array, int64_t d) {
  const ArrayPtr one = sliced(array, 0, d, 1);
  return shaped(*one, Shape(one->shape.begin() + 1, one->shape.end()));
}

template <typename Named>
Status add_biases(Mapper& m, const Recurrent& r, const Named& named, const Value& b, int64_t d, int64_t units,
                  Params& params) {
  if (b.absent()) return Done{};
  if (!b.is_const() || rank_of(b) != 2 || d >= b.at[0]->shape[0]) return refused("its biases do not fit");
  if (!b.is_const() || b.at[0]->shape != Shape{b.at[0]->shape[0], 2 * r.gates * units})
    return refused("its biases do not fit");
  const ArrayPtr both = direction_of(*b.at[0], d);
  const ArrayPtr first = gates(*sliced(*both, 0, 0, r.gates * units), r.order),
                 second = gates(*sliced(*both, 0, r.gates * units, r.gates * units), r.order);
  if (std::string(r.op) == "lstm") {
    Array sum = *first;
    for (size_t i = 0; i < sum.reals.size(); ++i) sum.reals[i] += second->reals[i];
    m.notes.insert("the two biases of an LSTM are one, their sum");
    TRY(const std::string bias, m.weight(named(b, std::make_shared<Array>(std::move(sum))), "bias"));
    params.emplace_back("bias", bias);
  } else {
    Value one = named(b, first), two = named(b, second);
    if (!b.source.empty()) one.source += ".ih", two.source += ".hh";
    TRY(const std::string ih_bias, m.weight(one, "bias_ih"));
    TRY(const std::string hh_bias, m.weight(two, "bias_hh"));
    params.emplace_back("bias_ih", ih_bias);
    params.emplace_back("bias_hh", hh_bias);
  }
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

Result<Values> recurrent(Mapper& m, const Call& call, const Recurrent& r) {
  CHECK_OK(check_recurrent(m, call, r));
  const bool rows_lead = call.integer("layout", 0) != 0;
  const Value& x = call.in(0);
  const Value &w = call.in(1), &u = call.in(2), &b = call.in(3);
  if (!w.is_const() || !u.is_const() || rank_of(w) != 3 || rank_of(u) != 3)
    return refused("its weights are computed from the inputs");
  const std::string direction = call.text("direction", "forward");
  const int64_t directions = w.at[0]->shape[0], units = u.at[0]->shape[2];
  if (directions != (direction == "bidirectional" ? 2 : 1) || w.at[0]->shape[1] != r.gates * units ||
      u.at[0]->shape != Shape{directions, r.gates * units, units})
    return refused("its sizes do not fit");
  const int64_t steps = x.layout.dims[rows_lead ? 1 : 0];
  const Layout sequence{.dims = {1, steps, x.layout.dims[2]}, .n = 0};
  const Value input = rows_lead ? x : m.transposed_value(x, {1, 0, 2});
  Layout hidden = sequence;
  hidden.dims[2] = units;
  std::vector<Value> all, last;
  for (int64_t d = 0; d < directions; ++d) {
    const bool back = direction == "reverse" || d == 1;
    const auto named = [&](const Value& v, ArrayPtr array) {
      Value made = with_array(v, std::move(array));
      if (directions > 1 && !made.source.empty()) made.source += d == 0 ? ".forward" : ".backward";
      return made;
    };
    Params params;
    TRY(const std::string ih, m.weight(named(w, gates(*direction_of(*w.at[0], d), r.order)), "weight_ih"));
    TRY(const std::string hh, m.weight(named(u, gates(*direction_of(*u.at[0], d), r.order)), "weight_hh"));
    params = {{"weight_ih", ih}, {"weight_hh", hh}};
    CHECK_OK(add_biases(m, r, named, b, d, units, params));
    const Value made = m.make(r.op, {input.name}, hidden, {{"reverse", back ? "true" : "false"}}, params);
    if (call.wants(1)) {
      Layout row = hidden;
      row.dims[1] = 1;
      last.push_back(m.make("slice", {made.name}, row,
                            {{"axis", "1"},
                             {"begin", std::to_string(back ? 0 : steps - 1)},
                             {"end", std::to_string(back ? 1 : steps)},
                             {"step", "1"}}));
    }
    all.push_back(made);
  }
  Values out(3);
  if (call.wants(0)) {  // T,D,N,U; layout 1: N,T,D,U
    const Value y = stacked(m, all, steps, units);
    out[0] = rows_lead ? y : m.transposed_value(y, {1, 2, 0, 3});
  }
  if (call.wants(1)) {
    const Value h = stacked(m, last, 1, units);
    const Value flat = m.reshaped(h, {{1, directions, units}, 0});
    out[1] = rows_lead ? flat : m.transposed_value(flat, {1, 0, 2});
  }
  return out;
}

// softmax(q k^T scale + mask) v, spelled out.
Result<Values> attention(Mapper& m, const Call& call) {
  Value q = call.in(0), k = call.in(1), v = call.in(2);
  if (!q.is_graph() || !k.is_graph() || !v.is_graph()) return refused("an input is a constant");
  if (call.has(4) || call.has(5) || call.has(6) || call.wants(1) || call.wants(2) || call.wants(3))
    return refused("it has a past, a present or a second output");
  const bool flat = q.layout.rank() == 3;
  const auto heads_of = [&](const Value& x, int64_t heads) -> Result<Value> {
    if (x.layout.rank() == 4) return x;
    if (x.layout.rank() != 3 || heads < 1 || x.layout.dims[2] % heads != 0 || x.layout.n > 0)
      return refused("its heads do not fit");
    Layout cut = x.layout;
    cut.dims = {x.layout.dims[0], x.layout.dims[1], heads, x.layout.dims[2] / heads};
    return m.transposed_value(m.reshaped(x, cut), {0, 2, 1, 3});
  };
  TRY(q, heads_of(q, call.integer("q_num_heads", 0)));
  TRY(k, heads_of(k, call.integer("kv_num_heads", 0)));
  TRY(v, heads_of(v, call.integer("kv_num_heads", 0)));
  if (q.layout.rank() != 4 || k.layout.rank() != 4 || v.layout.rank() != 4)
    return refused("its sizes do not fit");
  const int64_t share = k.layout.dims[1] > 0 ? q.layout.dims[1] / k.layout.dims[1] : 0;
  if (share < 1 || share * k.layout.dims[1] != q.layout.dims[1]) return refused("its heads do not fit");
  k = repeated(m, k, 1, share);  // heads of queries that share keys lie together
  v = repeated(m, v, 1, share);
  const double scale = call.real("scale", 1 / std::sqrt(static_cast<double>(q.layout.dims[3])));
  TRY(Value scores, product(m, q, m.transposed_value(k, {0, 1, 3, 2})));
  TRY(scores, m.scalar_op("mul", scores, scale));
  if (const double cap = call.real("softcap", 0); cap > 0) {
    TRY(scores, m.scalar_op("div", scores, cap));
    TRY(scores, m.elementwise("tanh", {scores}));
    TRY(scores, m.scalar_op("mul", scores, cap));
  }
  if (call.integer("is_causal", 0) != 0) {
    const int64_t t = q.layout.dims[2], s = k.layout.dims[2];
    Array mask{.kind = Kind::kFloat, .shape = {t, s}};
    for (int64_t i = 0; i < t; ++i) {
      for (int64_t j = 0; j < s; ++j) mask.reals.push_back(j <= i ? 0 : -1e30);
    }
    TRY(scores, m.elementwise("add", {scores, m.constant(std::make_shared<Array>(std::move(mask)))}));
  }
  if (call.has(3)) {
    const Value& mask = call.in(3);
    if (mask.is_const() ? mask.at[0]->kind != Kind::kFloat : mask.kind != Kind::kFloat)
      return refused("its mask holds booleans");
    TRY(scores, m.elementwise("add", {scores, mask}));
  }
  const Value weights =
      m.make("softmax", {scores.name}, scores.layout, {{"axis", std::to_string(ir_axis(scores.layout, 3))}});
  TRY(const Value made, product(m, weights, v));
  if (!flat) return Values{made};
  const Value back = m.transposed_value(made, {0, 2, 1, 3});
  Layout whole = back.layout;
  whole.dims = {back.layout.dims[0], back.layout.dims[1], back.layout.dims[2] * back.layout.dims[3]};
  return Values{m.reshaped(back, whole)};
}

}  // namespace

Rows layer_rows() {
  return {
      {"MatMul", mat_mul},
      {"Gemm", gemm},
      {"Conv", conv},
      {"ConvTranspose", conv},
      {"MaxPool", pool},
      {"AveragePool", pool},
      {"GlobalAveragePool", +[](Mapper& m, const Call& c) { return global_pool(m, c, "mean"); }},
      {"GlobalMaxPool", +[](Mapper& m, const Call& c) { return global_pool(m, c, "max"); }},
      {"LpPool", lp_pool},
      {"GlobalLpPool", lp_pool},
      {"BatchNormalization", batch_norm},
      {"LayerNormalization", +[](Mapper& m, const Call& c) { return layer_norm(m, c, "layer_norm"); }},
      {"RMSNormalization", rms_norm},
      {"GroupNormalization", group_norm},
      {"InstanceNormalization", group_norm},
      {"MeanVarianceNormalization", mean_variance_norm},
      {"LpNormalization", lp_norm},
      {"LRN", lrn},
      {"LSTM",
       +[](Mapper& m, const Call& c) {
         return recurrent(m, c, {"lstm", 4, {0, 2, 3, 1}});
       }},
      {"GRU",
       +[](Mapper& m, const Call& c) {
         return recurrent(m, c, {"gru", 3, {1, 0, 2}});
       }},
      {"Attention", attention},
  };
}

}  // namespace bakeoff::onnx
