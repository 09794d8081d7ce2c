// Convolutions and pools. ONNX gives pads as numbers, as SAME (more behind, or more before) or VALID, and
// may round the number of windows up; window_of() turns all of that into pads before and after each axis,
// which is what the IR has. Rounding up becomes pads behind: Window::extra, which an average must not
// count.
//
// The IR's pools have no holes, and pads of at most half a window. Wider pads become a pad op. Windows with
// holes, and averages with a divisor that the IR cannot state, are spelled out (spelled_pool): one axis
// after the other, each place of the window as a strided slice, combined by maximum or add. An average is
// then multiplied by a table of 1 / (places that count).

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

constexpr int64_t kMostSpelled = int64_t{1} << 24;  // numbers of a table that is made here

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
    const int64_t all = std::max<int64_t>(whole - wanted, 0);
    more[i] += std::max<int64_t>(wanted - whole, 0);  // places that no window reaches
    w.before[i] = call.text("auto_pad", "NOTSET") == "SAME_UPPER" ? all / 2 : all - all / 2;
    w.after[i] = all - w.before[i];
  }
  return more;
}

// A convolution whose kernel is computed from weights: what each place of the kernel sees, as channels, and a product.
Result<Value> computed_conv(Mapper& m, const Value& x, const Value& weight, const Window& w,
                            const Layout& out) {
  const Shape& kernel = weight.layout.dims;  // O,I, then the window
  const int64_t inputs = kernel[1], outputs = kernel[0], groups = x.layout.dims[1] / inputs;
  int64_t places = 1, pixels = 1;
  Ints pads = {0, 0};
  Value wide = x;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    places *= w.kernel[i];
    pixels *= out.dims[i + 2];
    pads.insert(pads.end(), {w.before[i], w.after[i]});
    wide.layout.dims[i + 2] += w.before[i] + w.after[i];
  }
  if (places > 64) return refused("its kernel is computed, and has more than 64 places");
  if (wide.layout != x.layout)
    wide = m.make("pad", {x.name}, wide.layout, {{"pad", numbers_text(pads)}, {"value", "0.0"}});
  Values seen, products;
  for (int64_t place = 0; place < places; ++place) {
    Value part = wide;
    int64_t rest = place;
    for (size_t i = w.kernel.size(); i-- > 0; rest /= w.kernel[i]) {
      const int64_t begin = rest % w.kernel[i] * w.dilation[i];
      part = cut(m, part, i + 2, begin, begin + (out.dims[i + 2] - 1) * w.stride[i] + 1, w.stride[i]);
    }
    seen.push_back(m.reshaped(part, {{1, groups, inputs, 1, pixels}, 0}));
  }
  TRY(Value columns, concatenated(m, seen, 3));
  columns = m.reshaped(columns, {{1, groups, inputs * places, pixels}, 0});
  const Value matrix = m.reshaped(weight, {{1, groups, outputs / groups, inputs * places}, kNone});
  TRY(const Value made, product(m, matrix, columns));
  return m.reshaped(made, out);
}

Result<Values> conv(Mapper& m, const Call& call) {
  TRY(const Value x, m.rows_first(call.in(0)));
  const Value& weight = call.in(1);
  const bool computed = weight.is_graph() && weight.layout.n == kNone && call.op() == "Conv";
  if (!computed && (!weight.is_const() || !weight.fixed()))
    return refused("its weight is computed from the inputs");
  const size_t rank = x.layout.rank();
  if (rank < 3 || rank > 5 || rank_of(weight) != rank) return refused("its sizes do not fit");
  const bool transposes = call.op() == "ConvTranspose";
  const int64_t groups = call.integer("group", 1);
  const Shape shape = m.shape_at(weight, 0);
  if (groups < 1 || shape[transposes ? 1 : 0] < 1 || (!transposes && shape[0] % groups != 0) ||
      x.layout.dims[1] != (transposes ? shape[0] : shape[1] * groups))
    return refused("its sizes do not fit");
  TRY(Window w, window_of(call, x.layout.dims, Ints(shape.begin() + 2, shape.end())));
  if (!std::equal(w.kernel.begin(), w.kernel.end(), shape.begin() + 2, shape.end()))
    return refused("kernel_shape is not that of the weight");
  const std::string op = transposes ? "conv_transpose" : "conv";
  Ints more(rank - 2, 0);
  if (transposes) {
    TRY(more, transposed_pads(call, x.layout.dims, w));
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
  if (computed) {
    TRY(Value made, computed_conv(m, x, weight, w, out));
    if (call.has(2)) {
      Shape wide(rank - 1, 1);
      wide[0] = out.dims[1];
      if (!call.in(2).is_const()) return refused("its bias is computed");
      m.train_everywhere(call.in(2));
      TRY(made, m.elementwise("add", {made, with_array(call.in(2), shaped(*call.in(2).at[0], wide))}));
    }
    return Values{m.as_before(made, call.in(0))};
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
  return Values{m.as_before(made, call.in(0))};
}

// Constants round a picture.
Value padded(Mapper& m, const Value& x, const Window& w, double value) {
  const auto none = [](int64_t n) { return n == 0; };
  if (std::ranges::all_of(w.before, none) && std::ranges::all_of(w.after, none)) return x;
  Ints pads = {0, 0};
  Layout out = x.layout;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    pads.insert(pads.end(), {w.before[i], w.after[i]});
    out.dims[i + 2] += w.before[i] + w.after[i];
  }
  return m.make("pad", {x.name}, out, {{"pad", numbers_text(pads)}, {"value", real_text(value)}});
}

// Sums or maxima of windows, one axis after the other, as slices that are joined: for windows with holes and pads that
// the IR's pools do not have. The pads have been added to x.
Result<Value> over_windows(Mapper& m, Value x, const Window& w, const char* op) {
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int64_t span = w.dilation[i] * (w.kernel[i] - 1) + 1, size = x.layout.dims[i + 2];
    if (size < span) return refused("its window is larger than its input");
    if (w.kernel[i] > 64) return refused("a window of more than 64 places has holes");
    const int64_t last = (size - span) / w.stride[i] * w.stride[i];
    Value all;
    for (int64_t k = 0; k < w.kernel[i]; ++k) {
      const int64_t begin = k * w.dilation[i];
      const Value part = cut(m, x, i + 2, begin, begin + last + 1, w.stride[i]);
      if (k == 0) {
        all = part;
        continue;
      }
      TRY(all, m.elementwise(op, {all, part}));
    }
    x = all;
  }
  return x;
}

// 1 / how many places of each window count: those of the input, and of its pads where `pads` says so.
Result<Value> shares(Mapper& m, const Shape& dims, const Window& w, bool pads) {
  Array table{.kind = Kind::kFloat, .shape = {1, 1}, .reals = {1}};
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int64_t size = dims[i + 2], first = pads ? -w.before[i] : 0,
                  end = size + (pads ? w.after[i] - w.extra[i] : 0);
    TRY(const int64_t outputs, outputs_of(w, i, size));
    if (outputs * static_cast<int64_t>(table.size()) > kMostSpelled)
      return refused("its output is too large");
    std::vector<double> wide;
    for (const double before : table.reals) {
      for (int64_t o = 0; o < outputs; ++o) {
        int64_t places = 0;
        for (int64_t k = 0; k < w.kernel[i]; ++k) {
          const int64_t at = o * w.stride[i] + k * w.dilation[i] - w.before[i];
          if (at >= first && at < end) ++places;
        }
        if (places == 0) return refused("a window lies in the pads alone");
        wide.push_back(before / static_cast<double>(places));
      }
    }
    table.reals = std::move(wide);
    table.shape.push_back(outputs);
  }
  return m.constant(std::make_shared<Array>(std::move(table)));
}

Result<Value> spelled_pool(Mapper& m, const Value& x, const Window& w, bool max, bool counts) {
  const Value wide = padded(m, x, w, max ? -std::numeric_limits<double>::infinity() : 0);
  if (max) return over_windows(m, wide, w, "maximum");
  TRY(const Value sums, over_windows(m, wide, w, "add"));
  TRY(const Value share, shares(m, x.layout.dims, w, counts));
  return m.elementwise("mul", {sums, share});
}

Result<Values> pool(Mapper& m, const Call& call) {
  TRY(Value x, m.rows_first(call.in(0)));
  const size_t rank = x.layout.rank();
  if (rank < 3 || rank > 5) return refused("its sizes do not fit");
  const bool max = call.op() == "MaxPool";
  if (max && call.wants(1)) return refused("the places of the maxima are used");
  TRY(Window w, window_of(call, x.layout.dims, {}));
  bool wide = false, extra = false, holes = false;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    holes = holes || w.dilation[i] != 1;
    wide = wide || 2 * std::max(w.before[i], w.after[i]) > w.kernel[i];
    extra = extra || w.extra[i] > 0;
  }
  const bool counts = call.integer("count_include_pad", 0) != 0;
  if (holes || (!max && ((counts && extra) || (wide && !counts)))) {
    TRY(const Value made, spelled_pool(m, x, w, max, counts));
    return Values{m.as_before(made, call.in(0))};
  }
  if (wide) {
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
  const char* const op = max ? "max_pool" : "avg_pool";
  return Values{
      m.as_before(m.make(fmt::format("{}{}d", op, rank - 2), {x.name}, out, attributes), call.in(0))};
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

// (sum |x|^p)^(1/p)
Result<Values> lp_pool(Mapper& m, const Call& call) {
  TRY(const Value x, m.rows_first(call.in(0)));
  const double p = static_cast<double>(call.integer("p", 2));
  const size_t rank = x.layout.rank();
  if (rank < 3 || rank > 5) return refused("its sizes do not fit");
  if (p < 1 || p > 8) return refused("it is of a power above 8");
  TRY(const Value absolute, m.elementwise("abs", {x}));
  Value terms = absolute;
  for (int i = 1; i < static_cast<int>(p); ++i) {
    TRY(terms, m.elementwise("mul", {terms, absolute}));
  }
  if (call.op() == "GlobalLpPool") {
    Layout out = x.layout;
    std::fill(out.dims.begin() + 2, out.dims.end(), 1);
    Ints axes(rank - 2);
    std::iota(axes.begin(), axes.end(), 2);
    terms = m.make("sum", {terms.name}, out, {{"axes", numbers_text(axes)}, {"keepdims", "true"}});
  } else {
    TRY(Window w, window_of(call, x.layout.dims, {}));
    const Value wide = padded(m, terms, w, 0);
    if (std::any_of(w.dilation.begin(), w.dilation.end(), [](int64_t d) { return d != 1; })) {
      TRY(terms, over_windows(m, wide, w, "add"));
    } else {  // an average that counts the pads, times the number of places
      for (Ints* one : {&w.before, &w.after}) std::fill(one->begin(), one->end(), 0);
      Layout out = wide.layout;
      double places = 1;
      for (size_t i = 0; i < w.kernel.size(); ++i) {
        TRY(out.dims[i + 2], outputs_of(w, i, wide.layout.dims[i + 2]));
        places *= static_cast<double>(w.kernel[i]);
      }
      const Value mean = m.make(fmt::format("avg_pool{}d", rank - 2), {wide.name}, out,
                                {{"kernel", numbers_text(w.kernel)},
                                 {"stride", numbers_text(w.stride)},
                                 {"pad", pad_text(w)},
                                 {"count_include_pad", "true"}});
      TRY(terms, m.scalar_op("mul", mean, places));
    }
  }
  if (p == 1) return Values{m.as_before(terms, call.in(0))};
  TRY(const Value root, p == 2 ? m.elementwise("sqrt", {terms}) : m.scalar_op("pow", terms, 1 / p));
  return Values{m.as_before(root, call.in(0))};
}

// The columns of im2col put back, overlapping ones added: a transposed convolution whose kernel has a one for each
// place of a block.
Result<Values> col_to_im(Mapper& m, const Call& call) {
  TRY(const Value x, m.rows_first(call.in(0)));
  TRY(const Ints image, m.fixed_ints(call, 1, "image's sizes"));
  TRY(const Ints block, m.fixed_ints(call, 2, "block's sizes"));
  const size_t axes = block.size();
  if (axes < 1 || axes > 3 || image.size() != axes || x.layout.rank() != 3)
    return refused("its sizes do not fit");
  TRY(const int64_t places, count(block, 1 << 20));
  const bool small = std::ranges::all_of(image, [](int64_t size) { return size > 0 && size < (1 << 20); });
  if (!small || places < 1 || x.layout.dims[1] % places != 0 || x.layout.dims[1] * places > kMostSpelled)
    return refused("its sizes do not fit");
  const int64_t channels = x.layout.dims[1] / places;
  Shape dims = {1, channels};
  dims.insert(dims.end(), image.begin(), image.end());
  TRY(const Window w, window_of(call, dims, block));
  Layout cut_up{.dims = {1, x.layout.dims[1]}, .n = 0}, out{.dims = dims, .n = 0};
  Ints more;
  int64_t columns = 1;
  for (size_t i = 0; i < axes; ++i) {
    TRY(const int64_t blocks, outputs_of(w, i, image[i]));
    cut_up.dims.push_back(blocks);
    columns *= blocks;
    more.push_back(image[i] + w.before[i] + w.after[i] - w.stride[i] * (blocks - 1) -
                   w.dilation[i] * (block[i] - 1) - 1);
  }
  if (columns != x.layout.dims[2]) return refused("its sizes do not fit");
  Array kernel{.kind = Kind::kFloat, .shape = {x.layout.dims[1], 1}};
  kernel.shape.insert(kernel.shape.end(), block.begin(), block.end());
  for (int64_t row = 0; row < x.layout.dims[1]; ++row) {
    for (int64_t k = 0; k < places; ++k) kernel.reals.push_back(k == row % places ? 1 : 0);
  }
  TRY(const std::string name, m.frozen(m.graph.base + ".places", std::make_shared<Array>(std::move(kernel))));
  return Values{m.as_before(m.make(fmt::format("conv_transpose{}d", axes), {m.reshaped(x, cut_up).name}, out,
                                   {{"stride", numbers_text(w.stride)},
                                    {"pad", pad_text(w)},
                                    {"dilation", numbers_text(w.dilation)},
                                    {"groups", std::to_string(channels)},
                                    {"output_pad", numbers_text(more)}},
                                   {{"weight", name}}),
                            call.in(0))};
}

}  // namespace

Rows window_rows() {
  return {
      {"Conv", conv},
      {"ConvTranspose", conv},
      {"Col2Im", col_to_im},
      {"MaxPool", pool},
      {"AveragePool", pool},
      {"GlobalAveragePool", +[](Mapper& m, const Call& c) { return global_pool(m, c, "mean"); }},
      {"GlobalMaxPool", +[](Mapper& m, const Call& c) { return global_pool(m, c, "max"); }},
      {"LpPool", lp_pool},
      {"GlobalLpPool", lp_pool},
  };
}

}  // namespace bakeoff::onnx
