// ONNX's Resize has 3 modes, 6 rules of coordinates, 4 of rounding, antialiasing, regions and policies of
// aspect ratio; the IR's resize has few of these. But along one axis every resize is linear: output =
// matrix x input. fill_matrix() computes this matrix for each axis that changes, from ONNX's definitions.
// as_resize() compares the matrices with those of the IR's op in each of its modes. If none has the same,
// the result is a product with a frozen matrix along each axis.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "ir/op_table.h"
#include "ir/resize.h"
#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

// How an output place reads the input.
struct Sampling {
  std::string mode, coordinates, rounding;
  double cubic = -0.75;
  bool outside_left_out = false, antialias = false;
};

// What an axis becomes: along one axis a resize is a product with a matrix.
struct Resized {
  size_t axis = 0;
  int64_t from = 0, to = 0;
  double scale = 1, begin = 0, end = 1;  // tf_crop_and_resize: the part that is read, of 1
  std::vector<double> matrix = {};
  std::vector<double> outside = {};  // 1 for output places that lie outside of the input; empty: none does
};

// Where an output place lies in the input.
Result<double> place_of(int64_t i, const Resized& r, const std::string& coordinates) {
  const auto at = static_cast<double>(i), from = static_cast<double>(r.from);
  const double length = r.scale * from;  // before it is rounded down
  if (coordinates == "half_pixel") return (at + 0.5) / r.scale - 0.5;
  if (coordinates == "half_pixel_symmetric")
    return from / 2 * (1 - static_cast<double>(r.to) / length) + (at + 0.5) / r.scale - 0.5;
  if (coordinates == "pytorch_half_pixel") return length > 1 ? (at + 0.5) / r.scale - 0.5 : 0;
  if (coordinates == "align_corners") return length > 1 ? at * (from - 1) / (length - 1) : 0;
  if (coordinates == "asymmetric") return at / r.scale;
  if (coordinates == "tf_crop_and_resize") {
    const double size = (r.end - r.begin) * (from - 1);
    return r.begin * (from - 1) + (length > 1 ? at * size / (length - 1) : size / 2);
  }
  return refused("coordinate_transformation_mode '" + coordinates + "' has no counterpart");
}

double nearest(double x, const std::string& rounding) {
  const double low = std::floor(x);
  if (rounding == "ceil") return std::ceil(x);
  const bool up = (rounding == "round_prefer_floor" && x - low > 0.5) ||
                  (rounding == "round_prefer_ceil" && x - low >= 0.5);
  return up ? low + 1 : low;
}

// The weight of an input place at a distance d.
double kernel_at(double d, const Sampling& s) {
  d = std::abs(d);
  if (s.mode == "linear") return std::max(1 - d, 0.0);
  const double a = s.cubic;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

Status fill_matrix(Resized& r, const Sampling& s) {
  if (r.from * r.to > int64_t{1} << 26) return refused("its sizes are too large");
  r.matrix.assign(static_cast<size_t>(r.from * r.to), 0);
  const double narrow = s.antialias ? std::min(r.scale, 1.0) : 1.0,
               radius = (s.mode == "linear" ? 1 : 2) / narrow;
  for (int64_t i = 0; i < r.to; ++i) {
    TRY(const double x, place_of(i, r, s.coordinates));
    if (!(std::abs(x) < 1e9)) return refused("its sizes do not fit");
    if (s.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(r.from - 1))) {
      r.outside.resize(static_cast<size_t>(r.to), 0);
      r.outside[static_cast<size_t>(i)] = 1;
      continue;
    }
    double* const row = r.matrix.data() + i * r.from;
    const auto within = [&](int64_t at) { return std::clamp<int64_t>(at, 0, r.from - 1); };
    if (s.mode == "nearest") {
      row[within(static_cast<int64_t>(nearest(x, s.rounding)))] = 1;
      continue;
    }
    double sum = 0;
    for (auto at = static_cast<int64_t>(std::floor(x - radius));
         at <= static_cast<int64_t>(std::ceil(x + radius)); ++at) {
      if (s.outside_left_out && at != within(at)) continue;
      const double weight = kernel_at((static_cast<double>(at) - x) * narrow, s);
      row[within(at)] += weight;
      sum += weight;
    }
    if (sum == 0) return refused("a place reads nothing of the input");
    for (int64_t at = 0; at < r.from; ++at) row[at] /= sum;
  }
  return Done{};
}

Result<Value> multiplied(Mapper& m, const Value& x, size_t axis, int64_t to, std::vector<double> matrix) {
  const size_t rank = x.layout.rank();
  const int64_t from = x.layout.dims[axis];
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[axis], perm[rank - 1]);
  const Value last = m.transposed_value(x, perm);
  TRY(const std::string table,
      m.frozen(m.graph.base + ".resize",
               std::make_shared<Array>(Array{Kind::kFloat, {to, from}, std::move(matrix), {}})));
  Layout out = last.layout;
  out.dims.back() = to;
  const Value made = m.make("linear", {last.name}, out, {}, {{"weight", table}});
  return m.transposed_value(made, perm);
}

// Whether the IR's resize has these matrices.
bool is_resize(const ir::Node& node, const std::vector<Resized>& axes) {
  return std::all_of(axes.begin(), axes.end(), [&](const Resized& one) {
    if (!one.outside.empty()) return false;
    std::vector<double> rest = one.matrix;
    const auto taps = ir::resize_taps(node, one.from, one.to);
    for (size_t i = 0; i < taps.size(); ++i) {
      double* const row = rest.data() + static_cast<int64_t>(i) * one.from;
      row[taps[i].low] -= 1 - taps[i].share;
      row[taps[i].high] -= taps[i].share;
    }
    return std::all_of(rest.begin(), rest.end(), [](double x) { return std::abs(x) < 1e-9; });
  });
}

// The op resize, where it says the same.
std::optional<Value> as_resize(Mapper& m, const Value& before, const std::vector<Resized>& axes) {
  const size_t rank = before.layout.rank();
  if (rank < 3 || rank > 5 || !before.layout.plain()) return std::nullopt;
  const Result<Value> first = m.rows_first(before);
  if (!first || first->layout.dims.size() != rank) return std::nullopt;
  const Value& x = *first;
  Layout out = x.layout;
  for (const Resized& one : axes) {
    if (one.axis < 2) return std::nullopt;
    out.dims[one.axis] = one.to;
  }
  const Ints size(out.dims.begin() + 2, out.dims.end());
  for (const char* mode : {"nearest", "linear"}) {
    for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners"}) {
      ir::Node node = ir::node_with_defaults(ir::Op::kResize);
      ir::set_attribute(node, "mode", std::string(mode));
      ir::set_attribute(node, "coordinates", std::string(coordinates));
      const bool exists = std::string(mode) == "linear" || std::string(coordinates) != "align_corners";
      if (!exists || !is_resize(node, axes)) continue;
      const Value made = m.make("resize", {x.name}, out,
                                {{"size", numbers_text(size)}, {"mode", mode}, {"coordinates", coordinates}});
      return m.as_before(made, before);
    }
  }
  return std::nullopt;
}

// The sizes or factors that a node asks for, by axis; one of the two.
struct Asked {
  Ints axes, sizes;
  std::vector<double> factors, roi;
};

Result<Asked> asked_of(Mapper& m, const Call& call, const Value& x, bool old) {
  Asked asked;
  asked.axes.resize(x.layout.rank());
  std::iota(asked.axes.begin(), asked.axes.end(), 0);
  asked.axes = call.integers("axes", asked.axes);
  const size_t scales_at = old ? 1 : 2;
  if (!old && call.has(3)) {
    if (!call.in(3).is_const()) return refused("its sizes are computed from the inputs");
    asked.sizes = call.in(3).at[0]->ints;
  }
  if (call.has_attribute("scales")) {  // Upsample before opset 9
    asked.factors = call.reals("scales");
  } else if (asked.sizes.empty() && call.has(scales_at)) {
    TRY(const ArrayPtr array, m.fixed(call, scales_at, "scales"));
    asked.factors = array->reals;
  }
  if ((asked.sizes.empty() ? asked.factors.size() : asked.sizes.size()) != asked.axes.size())
    return refused("its sizes do not fit");
  if (!old && call.text("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    TRY(const ArrayPtr roi, m.fixed(call, 1, "region (roi)"));
    asked.roi = roi->reals;
    if (asked.roi.size() != 2 * asked.axes.size()) return refused("its region (roi) does not fit");
  }
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || asked.sizes.empty()) return asked;
  double scale = 0;  // one for all axes
  const Shape whole = m.shape_at(x, 0);
  for (size_t i = 0; i < asked.axes.size(); ++i) {
    TRY(const size_t axis, axis_of(asked.axes[i], whole.size()));
    if (x.layout.holds_batch(axis)) return refused("keeps an aspect ratio with the batch");
    const double one = static_cast<double>(asked.sizes[i]) / static_cast<double>(whole[axis]);
    scale = i == 0 ? one : policy == "not_larger" ? std::min(scale, one) : std::max(scale, one);
  }
  asked.factors.assign(asked.axes.size(), scale);
  for (size_t i = 0; i < asked.axes.size(); ++i) {
    TRY(const size_t axis, axis_of(asked.axes[i], whole.size()));
    asked.sizes[i] = static_cast<int64_t>(std::floor(scale * static_cast<double>(whole[axis]) + 0.5));
  }
  return asked;
}

// The axes that change.
Result<std::vector<Resized>> resized_axes(Mapper& m, const Value& x, const Asked& asked, const Sampling& s) {
  std::vector<Resized> changed;
  for (size_t i = 0; i < asked.axes.size(); ++i) {
    TRY(const size_t axis, axis_of(asked.axes[i], x.layout.rank()));
    const bool sized = !asked.sizes.empty(), scaled = !asked.factors.empty();
    if (x.layout.holds_batch(axis)) {
      const bool same = sized ? asked.sizes[i] == m.shape_at(x, 0)[axis] : asked.factors[i] == 1;
      if (!same) return refused("resizes the batch");
      continue;
    }
    Resized one{.axis = axis, .from = x.layout.dims[axis]};
    const auto from = static_cast<double>(one.from);
    one.scale = scaled ? asked.factors[i] : static_cast<double>(asked.sizes[i]) / from;
    one.to = sized ? asked.sizes[i] : static_cast<int64_t>(std::floor(from * one.scale));
    if (one.to < 1 || one.to > 65536) return refused("a size is none");
    if (!asked.roi.empty()) {
      one.begin = asked.roi[i];
      one.end = asked.roi[i + asked.axes.size()];
    }
    const bool whole = one.begin == 0 && one.end == 1;
    if (whole && one.to == one.from && (sized || one.scale == 1)) continue;
    if (axis == 0 && x.layout.n < 0 && x.layout.rank() == 4) return refused("resizes its first axis");
    CHECK_OK(fill_matrix(one, s));
    changed.push_back(std::move(one));
  }
  return changed;
}

// A number at all places that lie outside of the input along some axis.
Result<Value> with_outside(Mapper& m, const Value& x, const std::vector<Resized>& axes, double number) {
  if (number == 0) return x;
  Value made = x, inside;
  for (const Resized& one : axes) {
    if (one.outside.empty()) continue;
    Array mask{.kind = Kind::kFloat, .shape = Shape(x.layout.rank(), 1)};
    mask.shape[one.axis] = one.to;
    for (const double out : one.outside) mask.reals.push_back(1 - out);
    if (!inside.is_const()) {
      inside = m.constant(std::make_shared<Array>(std::move(mask)));
      continue;
    }
    TRY(const Shape both, broadcast(inside.at[0]->shape, mask.shape));
    TRY(const ArrayPtr a, expanded(inside.at[0], both));
    TRY(const ArrayPtr b, expanded(std::make_shared<Array>(std::move(mask)), both));
    auto product_of_both = std::make_shared<Array>(*a);
    for (size_t i = 0; i < a->size(); ++i) product_of_both->reals[i] *= b->reals[i];
    inside = m.constant(std::move(product_of_both));
  }
  if (!inside.is_const()) return x;
  auto added = std::make_shared<Array>(*inside.at[0]);
  for (double& one : added->reals) one = number * (1 - one);
  return m.elementwise("add", {x, m.constant(std::move(added))});
}

Result<Values> resize(Mapper& m, const Call& call) {
  if (!call.in(0).is_graph())
    return refused("computes with constants alone, in a way that is not computed at import");
  Value x = call.in(0);
  const bool old = call.op() == "Upsample" || call.opset < 11;
  Sampling s{.mode = call.text("mode", "nearest"),
             .coordinates = old ? "asymmetric" : call.text("coordinate_transformation_mode", "half_pixel"),
             .rounding = old ? "floor" : call.text("nearest_mode", "round_prefer_floor"),
             .cubic = call.real("cubic_coeff_a", -0.75),
             .outside_left_out = call.integer("exclude_outside", 0) != 0,
             .antialias = call.integer("antialias", 0) != 0};
  if (s.mode == "bilinear") s.mode = "linear";
  TRY(const Asked asked, asked_of(m, call, x, old));
  TRY(const std::vector<Resized> changed, resized_axes(m, x, asked, s));
  if (changed.empty()) return Values{x};
  if (const auto made = as_resize(m, x, changed)) return Values{*made};
  for (const Resized& one : changed) {
    TRY(x, multiplied(m, x, one.axis, one.to, one.matrix));
  }
  TRY(x, with_outside(m, x, changed, call.real("extrapolation_value", 0)));
  return Values{x};
}

}  // namespace

Rows resize_rows() { return {{"Resize", resize}, {"Upsample", resize}}; }

}  // namespace bakeoff::onnx
