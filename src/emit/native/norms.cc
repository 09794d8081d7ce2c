// Norms: of columns (batch_norm), of stretches (layer, group and RMS norm), of neighbouring channels (lrn).

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/native/ops.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;

// Everything but the channels, which come last.
Count columns(const Call& c) { return count_of(c.in(0).sizes, 0, c.in(0).sizes.size() - 1); }
std::string channels(const Call& c) { return std::to_string(c.in(0).sizes.back()); }
std::string number(const Call& c, const char* attribute) {
  return fmt::format("{}", c.node().real(attribute));
}

void batch_norm(const Call& c) {
  if (!c.graph.trains())
    return call(c, "batch_norm_fixed", {channels(c)},
                {columns(c).text(), number(c, "eps"), c.x(), c.w("weight"), c.w("bias"), c.w("mean"),
                 c.w("var"), c.y()});
  call(c, "batch_norm", {channels(c)},
       {"part", "parts", columns(c).text(), number(c, "eps"), number(c, "momentum"), c.x(), c.w("weight"),
        c.w("bias"), c.w("mean"), c.w("var"), c.step.kept, c.y()});
}
void batch_norm_backward(const Call& c) {
  call(c, "batch_norm_backward", {channels(c)},
       {"part", "parts", columns(c).text(), c.x(), c.w("weight"), c.step.kept, c.g(), c.dw("weight"),
        c.dw("bias"), c.dx(), c.begins(0) ? "true" : "false"});
}
bool first_only(const Call&, size_t i) { return i == 0; }
Count batch_norm_kept(const Call& c) { return {c.graph.trains() ? 2 * c.in(0).sizes.back() : 0, false}; }

// Rows, and the Stretch of each.
struct Stretches {
  Count rows;
  int64_t groups = 1;
  std::string shape;

  explicit Stretches(const Call& c) {
    const ir::Shape& x = c.in(0).sizes;
    if (c.node().op == Op::kGroupNorm) {
      groups = c.node().integer("groups");
      rows = {1, true};
      shape = fmt::format("Stretch{{.c = {}, .p = {}, .groups = {}}}", x.back(),
                          ir::product(x, 1, x.size() - 1), groups);
      return;
    }
    const size_t first = x.size() - static_cast<size_t>(c.node().integer("dims"));
    rows = count_of(x, 0, first);
    shape = fmt::format("Stretch{{.c = {}{}}}", count_of(x, first, x.size()).count,
                        c.node().op == Op::kRmsNorm ? ", .about_zero = true" : "");
  }
};

std::string shift(const Call& c) { return c.node().op == Op::kRmsNorm ? "nullptr" : c.w("bias"); }
std::string shift_gradient(const Call& c) { return c.node().op == Op::kRmsNorm ? "nullptr" : c.dw("bias"); }

void norm(const Call& c) {
  const Stretches s(c);
  call(c, "stretch_norm", {s.shape},
       {s.rows.text(), number(c, "eps"), c.x(), c.w("weight"), shift(c), c.step.kept, c.y()});
}
void norm_backward(const Call& c) {
  const Stretches s(c);
  call(c, "stretch_norm_backward", {s.shape},
       {s.rows.text(), c.x(), c.w("weight"), c.step.kept, c.g(), c.dw("weight"), shift_gradient(c), c.dx(),
        c.begins(0) ? "true" : "false"});
}
Count norm_kept(const Call& c) {
  const Stretches s(c);
  return {2 * s.groups * s.rows.count, s.rows.rows};
}

std::vector<std::string> window(const Call& c) {
  return {channels(c), std::to_string(c.node().integer("size"))};
}
void lrn(const Call& c) {
  call(c, "lrn", window(c),
       {columns(c).text(), number(c, "alpha"), number(c, "beta"), number(c, "k"), c.x(), c.step.kept, c.y()});
}
void lrn_backward(const Call& c) {
  call(c, "lrn_dx", window(c),
       {columns(c).text(), number(c, "alpha"), number(c, "beta"), c.x(), c.y(), c.step.kept, c.g(), c.dx()});
}

}  // namespace

OpRows norm_rows() {
  const OpRow stretches = {norm, norm_backward, true, false, norm_kept, nullptr, nullptr, first_only};
  return {{Op::kBatchNorm,
           {batch_norm, batch_norm_backward, true, false, batch_norm_kept, nullptr, nullptr, first_only}},
          {Op::kLayerNorm, stretches},
          {Op::kRmsNorm, stretches},
          {Op::kGroupNorm, stretches},
          {Op::kLrn, {lrn, lrn_backward, true, true, as_many}}};
}

}  // namespace bakeoff::emit::native
