// One function for each op: it checks the types of its inputs and the shapes of its parameters, and returns
// the type of its output. The verifier calls them, and nothing behind it checks again: referee, costs and
// emitters index arrays by these shapes. A rule that accepts too much is a crash or a wrong gradient
// elsewhere, with no message.
//
// So an op is as narrow as the narrowest framework that must run it: a pool's padding is at most half its
// kernel (torch), labels to ignore are numbers that float32 holds exactly (Keras keeps targets in it). Rows
// of a batch are a symbol, N, that stays axis 0; so one workload serves any batch size, and the proofs can
// take fewer rows than the race does.

#include "ir/op_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/texts.h"
#include "ir/elementwise.h"

namespace bakeoff::ir::rules {
namespace {

using Ints = std::vector<int64_t>;

template <typename... Args>
Error misfit(fmt::format_string<Args...> text, Args&&... args) {
  return Error{.message = fmt::format(text, std::forward<Args>(args)...)};
}

Status want_rank(const NodeView& view, size_t rank, std::string_view layout) {
  const Shape& x = view.inputs[0].shape;
  if (x.size() != rank) return misfit("needs {} input, got {}", layout, to_text(x));
  return Done{};
}

Status want_float(const NodeView& view) {
  for (const Type& input : view.inputs) {
    if (input.dtype != DType::kF32) return misfit("needs float inputs, got {}", to_text(input));
  }
  return Done{};
}

// The parameter in `slot` must be absent or have exactly this shape.
Status want_param(const NodeView& view, std::string_view slot, const Shape& shape) {
  if (view.node.has(slot) && view.param(slot) != shape) {
    return misfit("{} must be {}, is {}", slot, to_text(shape), to_text(view.param(slot)));
  }
  return Done{};
}

// Output size of one axis of a sliding window. Negative results mean that the window does not fit.
int64_t window(int64_t size, int64_t before, int64_t after, int64_t kernel, int64_t stride,
               int64_t dilation) {
  const int64_t span = size + before + after - dilation * (kernel - 1) - 1;
  return span < 0 ? -1 : span / stride + 1;
}

Status want_positive(const Node& node, std::string_view attribute, int64_t least) {
  const auto& numbers = node.integers(attribute);
  if (std::any_of(numbers.begin(), numbers.end(), [least](int64_t n) { return n < least; })) {
    return misfit("{} must be at least {}", attribute, least);
  }
  return Done{};
}

}  // namespace

// The sizes of a convolution's or pool's output after N and its channels.
Result<Shape> places(const NodeView& view, const Shape& kernel, const Ints& dilation) {
  const Shape& x = view.inputs[0].shape;
  const auto &stride = view.node.integers("stride"), &pad = view.node.integers("pad");
  Shape out;
  for (size_t axis = 0; axis < kernel.size(); ++axis) {
    out.push_back(
        window(x[axis + 2], pad[2 * axis], pad[2 * axis + 1], kernel[axis], stride[axis], dilation[axis]));
    if (out.back() < 1) return misfit("kernel {} does not fit into input {}", join(kernel, "x"), to_text(x));
  }
  return out;
}

constexpr std::array<const char*, 3> kPictures = {"an N,C,W", "an N,C,H,W", "an N,C,D,H,W"};

// "O,I,kH,kW" and the like.
constexpr std::array<const char*, 3> kKernels = {"O,I,kW", "O,I,kH,kW", "O,I,kD,kH,kW"};

Result<Type> conv(const NodeView& view) {
  const size_t axes = view.node.integers("stride").size();
  CHECK_OK(want_float(view));
  CHECK_OK(want_rank(view, axes + 2, kPictures[axes - 1]));
  const Shape& x = view.inputs[0].shape;
  const Shape& w = view.param("weight");
  const int64_t groups = view.node.integer("groups");
  if (w.size() != axes + 2) return misfit("weight must be {}, is {}", kKernels[axes - 1], to_text(w));
  if (groups < 1 || x[1] % groups != 0 || w[0] % groups != 0) {
    return misfit("groups={} does not divide {} input and {} output channels", groups, x[1], w[0]);
  }
  if (w[1] * groups != x[1]) {
    return misfit("weight {} takes {} channels per group, input {} has {}", to_text(w), w[1], to_text(x),
                  x[1] / groups);
  }
  CHECK_OK(want_param(view, "bias", {w[0]}));
  CHECK_OK(want_positive(view.node, "stride", 1));
  CHECK_OK(want_positive(view.node, "dilation", 1));
  CHECK_OK(want_positive(view.node, "pad", 0));
  TRY(Shape out, places(view, Shape(w.begin() + 2, w.end()), view.node.integers("dilation")));
  out.insert(out.begin(), {x[0], w[0]});
  return Type{DType::kF32, out};
}

Result<Type> conv_transpose(const NodeView& view) {
  const auto &stride = view.node.integers("stride"), &pad = view.node.integers("pad");
  const auto &dilation = view.node.integers("dilation"), &extra = view.node.integers("output_pad");
  const size_t axes = stride.size();
  CHECK_OK(want_float(view));
  CHECK_OK(want_rank(view, axes + 2, kPictures[axes - 1]));
  const Shape& x = view.inputs[0].shape;
  const Shape& w = view.param("weight");
  const int64_t groups = view.node.integer("groups");
  if (w.size() != axes + 2) return misfit("weight must be I,O and the kernel's sizes, is {}", to_text(w));
  if (groups < 1 || x[1] % groups != 0) return misfit("groups={} does not divide {} channels", groups, x[1]);
  if (w[0] != x[1])
    return misfit("weight {} takes {} channels, input {} has {}", to_text(w), w[0], to_text(x), x[1]);
  CHECK_OK(want_param(view, "bias", {w[1] * groups}));
  CHECK_OK(want_positive(view.node, "stride", 1));
  CHECK_OK(want_positive(view.node, "dilation", 1));
  CHECK_OK(want_positive(view.node, "pad", 0));
  CHECK_OK(want_positive(view.node, "output_pad", 0));
  Shape out = {x[0], w[1] * groups};
  for (size_t axis = 0; axis < axes; ++axis) {
    if (extra[axis] >= stride[axis]) return misfit("output_pad must be less than the stride");
    out.push_back((x[axis + 2] - 1) * stride[axis] + dilation[axis] * (w[axis + 2] - 1) + 1 + extra[axis] -
                  pad[2 * axis] - pad[2 * axis + 1]);
    if (out.back() < 1) return misfit("pad {} takes away more than there is", join(pad, ","));
  }
  return Type{DType::kF32, out};
}

Result<Type> linear(const NodeView& view) {
  CHECK_OK(want_float(view));
  Shape x = view.inputs[0].shape;
  const Shape& w = view.param("weight");
  if (x.size() < 2) return misfit("needs an input of at least two axes, got {}", to_text(x));
  if (w.size() != 2 || w[1] != x.back()) {
    return misfit("weight {} does not fit the last axis of input {}", to_text(w), to_text(x));
  }
  CHECK_OK(want_param(view, "bias", {w[0]}));
  x.back() = w[0];
  return Type{DType::kF32, x};
}

Result<Type> batch_norm(const NodeView& view) {
  CHECK_OK(want_float(view));
  const Shape& x = view.inputs[0].shape;
  if (x.size() < 2 || x.size() > 5)
    return misfit("needs an N,C, N,C,W, N,C,H,W or N,C,D,H,W input, got {}", to_text(x));
  for (const std::string_view slot : {"weight", "bias", "mean", "var"}) {
    CHECK_OK(want_param(view, slot, {x[1]}));
  }
  if (view.node.real("eps") <= 0) return misfit("eps must be positive");
  const double momentum = view.node.real("momentum");
  if (momentum < 0 || momentum > 1) return misfit("momentum must lie in [0, 1]");
  return view.inputs[0];
}

Result<Type> layer_norm(const NodeView& view) {
  CHECK_OK(want_float(view));
  const Shape& x = view.inputs[0].shape;
  const int64_t dims = view.node.integer("dims");
  if (dims < 1 || dims >= static_cast<int64_t>(x.size())) {
    return misfit("dims={} must lie in [1, {}] for input {}", dims, x.size() - 1, to_text(x));
  }
  const Shape tail(x.end() - dims, x.end());
  CHECK_OK(want_param(view, "weight", tail));
  CHECK_OK(want_param(view, "bias", tail));
  if (view.node.real("eps") <= 0) return misfit("eps must be positive");
  return view.inputs[0];
}

Result<Type> embedding(const NodeView& view) {
  const Type& ids = view.inputs[0];
  if (ids.dtype != DType::kI32) return misfit("needs integer input, got {}", to_text(ids));
  const Shape& w = view.param("weight");
  if (w.size() != 2) return misfit("weight must be rows,width, is {}", to_text(w));
  if (const int64_t row = padding_idx(view.node).value_or(0); row < 0 || row >= w[0])
    return misfit("padding_idx={} is no row of {}", row, to_text(w));
  Shape out = ids.shape;
  out.push_back(w[1]);
  return Type{DType::kF32, out};
}

Result<Type> same(const NodeView& view) {
  CHECK_OK(want_float(view));
  return view.inputs[0];
}

Status check_rate(const NodeView& view) {
  const double rate = view.node.real("rate");
  if (rate < 0 || rate >= 1) return misfit("rate must lie in [0, 1)");
  return Done{};
}

Result<Type> dropout(const NodeView& view) {
  CHECK_OK(check_rate(view));
  return same(view);
}

Result<Type> softmax(const NodeView& view) {
  const int64_t axis = view.node.integer("axis");
  if (axis < 1 || axis >= static_cast<int64_t>(view.inputs[0].shape.size())) {
    return misfit("axis={} is not an axis after N of {}", axis, to_text(view.inputs[0].shape));
  }
  return same(view);
}

Result<Type> pool(const NodeView& view) {
  const auto &kernel = view.node.integers("kernel"), &pad = view.node.integers("pad");
  CHECK_OK(want_float(view));
  CHECK_OK(want_rank(view, kernel.size() + 2, kPictures[kernel.size() - 1]));
  CHECK_OK(want_positive(view.node, "kernel", 1));
  CHECK_OK(want_positive(view.node, "stride", 1));
  CHECK_OK(want_positive(view.node, "pad", 0));
  const Shape& x = view.inputs[0].shape;
  for (size_t side = 0; side < pad.size(); ++side) {
    // Every window then holds at least one real element; torch has the same bound.
    if (pad[side] * 2 > kernel[side / 2]) return misfit("pad must be at most half the kernel");
  }
  TRY(Shape out, places(view, kernel, Ints(kernel.size(), 1)));
  out.insert(out.begin(), {x[0], x[1]});
  return Type{DType::kF32, out};
}

Result<Type> global_pool2d(const NodeView& view) {
  CHECK_OK(want_float(view));
  CHECK_OK(want_rank(view, 4, "an N,C,H,W"));
  const Shape& x = view.inputs[0].shape;
  return Type{DType::kF32, {x[0], x[1]}};
}

Result<Type> resize(const NodeView& view) {
  CHECK_OK(want_float(view));
  const Shape& x = view.inputs[0].shape;
  const auto& size = view.node.integers("size");
  if (x.size() < 3 || x.size() > 5)
    return misfit("needs an N,C,W, N,C,H,W or N,C,D,H,W input, got {}", to_text(x));
  if (size.size() + 2 != x.size())
    return misfit("size needs a number for each axis after N and C of {}, got {}", to_text(x), size.size());
  CHECK_OK(want_positive(view.node, "size", 1));
  constexpr int64_t kLargest = 65536;  // of an axis: products of sizes stay far below the largest number
  if (std::any_of(size.begin(), size.end(), [](int64_t n) { return n > kLargest; }))
    return misfit("size must be at most {}", kLargest);
  if (view.node.word("mode") == "nearest" && view.node.word("coordinates") == "align_corners")
    return misfit("mode=nearest needs coordinates=half_pixel or asymmetric");
  Shape out = {x[0], x[1]};
  out.insert(out.end(), size.begin(), size.end());
  return Type{DType::kF32, out};
}

Result<Type> flatten(const NodeView& view) {
  const Shape& x = view.inputs[0].shape;
  if (x.size() < 2) return misfit("needs an input of at least two axes, got {}", to_text(x));
  return Type{view.inputs[0].dtype, {x[0], product(x, 1, x.size())}};
}

Result<Type> reshape(const NodeView& view) {
  const Shape& x = view.inputs[0].shape;
  const Shape& shape = view.node.integers("shape");
  const size_t rows = !x.empty() && x[0] == kBatch ? 1 : 0;  // what has no N gets none
  if (shape.empty() || (rows == 1 && shape[0] != kBatch) ||
      std::count(shape.begin(), shape.end(), kBatch) != static_cast<int64_t>(rows)) {
    return rows == 1 ? misfit("shape must start with N and hold it once")
                     : misfit("{} has no N, and its shape must have none", to_text(x));
  }
  if (std::any_of(shape.begin() + static_cast<int64_t>(rows), shape.end(), [](int64_t n) { return n < 1; })) {
    return misfit("sizes must be positive");
  }
  if (product(shape, rows, shape.size()) != product(x, rows, x.size())) {
    return misfit("{} and {} differ in their number of elements", to_text(shape), to_text(x));
  }
  return Type{view.inputs[0].dtype, shape};
}

Result<Type> transpose(const NodeView& view) {
  const Shape& x = view.inputs[0].shape;
  const auto& perm = view.node.integers("perm");
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> axes(x.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (sorted != axes || perm[0] != 0)
    return misfit("perm must be a permutation of {} axes with N first", x.size());
  Shape out;
  for (const int64_t axis : perm) out.push_back(x[static_cast<size_t>(axis)]);
  return Type{view.inputs[0].dtype, out};
}

Result<Type> pad(const NodeView& view) {
  CHECK_OK(want_float(view));
  Shape x = view.inputs[0].shape;
  const auto& pads = view.node.integers("pad");
  if (pads.size() != 2 * (x.size() - 1)) {
    return misfit("pad needs two numbers for each axis after N of {}, got {}", to_text(x), pads.size());
  }
  CHECK_OK(want_positive(view.node, "pad", 0));
  for (size_t axis = 1; axis < x.size(); ++axis) x[axis] += pads[2 * axis - 2] + pads[2 * axis - 1];
  return Type{DType::kF32, x};
}

Result<Type> concat(const NodeView& view) {
  CHECK_OK(want_float(view));
  Shape out = view.inputs[0].shape;
  const int64_t axis = view.node.integer("axis");
  if (axis < 1 || axis >= static_cast<int64_t>(out.size())) {
    return misfit("axis={} is not an axis after N of {}", axis, to_text(out));
  }
  const auto at = static_cast<size_t>(axis);
  for (size_t i = 1; i < view.inputs.size(); ++i) {
    Shape other = view.inputs[i].shape;
    if (other.size() != out.size()) return misfit("{} and {} differ in rank", to_text(out), to_text(other));
    const int64_t size = other[at];
    other[at] = out[at];
    if (other != out) return misfit("inputs differ outside axis {}: {}", axis, to_text(view.inputs[i].shape));
    out[at] += size;
  }
  return Type{DType::kF32, out};
}

Result<Type> join_values(const NodeView& view) {
  CHECK_OK(want_float(view));
  int64_t sum = 0;
  for (const Type& input : view.inputs) {
    const Shape& shape = input.shape;
    if (shape.size() < 2 || shape[0] != kBatch)
      return misfit("needs values of at least two axes, N first, got {}", to_text(shape));
    sum += product(shape, 1, shape.size());
  }
  return Type{DType::kF32, {kBatch, sum}};
}

// Sizes are equal or 1, or one shape is that of a scalar.
Result<Shape> joined(const Shape& a, const Shape& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  if (a.size() != b.size()) return misfit("{} and {} differ in rank", to_text(a), to_text(b));
  Shape out;
  for (size_t axis = 0; axis < a.size(); ++axis) {
    if (a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1) {
      return misfit("{} and {} do not broadcast", to_text(a), to_text(b));
    }
    out.push_back(a[axis] == 1 ? b[axis] : a[axis]);
  }
  return out;
}

Result<Type> broadcast(const NodeView& view) {
  CHECK_OK(want_float(view));
  TRY(const Shape out, joined(view.inputs[0].shape, view.inputs[1].shape));
  return Type{DType::kF32, out};
}

// Whether an input is a number that the workload states.
bool is_number(const NodeView& view, size_t input) {
  return view.workload.is_constant(view.node.inputs[input]);
}

Result<Type> elementwise(const NodeView& view) {
  const Elementwise& row = *find_elementwise(view.node.op);
  const DType wanted = row.kind == ElementKind::kLogic ? DType::kBool : DType::kF32;
  bool numbers = true;
  for (size_t i = 0; i < view.inputs.size(); ++i) numbers = numbers && is_number(view, i);
  if (numbers) return misfit("of numbers alone is a number: state it as a constant");
  Shape shape = view.inputs[0].shape;
  for (const Type& input : view.inputs) {
    if (input.dtype != wanted) return misfit("needs {} inputs, got {}", name(wanted), to_text(input));
    TRY(shape, joined(shape, input.shape));
  }
  for (const Attribute& a : view.node.attributes) {
    if (std::isnan(std::get<double>(a.value))) return misfit("{} must be a number", a.name);
  }
  return Type{row.kind == ElementKind::kReal ? DType::kF32 : DType::kBool, shape};
}

Result<Type> where(const NodeView& view) {
  if (view.inputs[0].dtype != DType::kBool)
    return misfit("needs a bool condition, got {}", to_text(view.inputs[0]));
  if (is_number(view, 1) && is_number(view, 2))
    return misfit("chooses between two numbers: give one of them as a parameter");
  Shape shape = view.inputs[0].shape;
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (view.inputs[i].dtype != DType::kF32)
      return misfit("chooses between floats, got {}", to_text(view.inputs[i]));
    TRY(shape, joined(shape, view.inputs[i].shape));
  }
  return Type{DType::kF32, shape};
}

// Axes in rising order, each once, none of them N.
Status want_axes(const Ints& axes, const Shape& x) {
  int64_t before = 0;
  for (const int64_t axis : axes) {
    if (axis <= before || axis >= static_cast<int64_t>(x.size()))
      return misfit("axes={} are not rising axes after N of {}", join(axes, ","), to_text(x));
    before = axis;
  }
  if (axes.empty()) return misfit("axes must name one at least");
  return Done{};
}

Status want_axis(int64_t axis, const Shape& x) {
  if (axis < 1 || axis >= static_cast<int64_t>(x.size()))
    return misfit("axis={} is not an axis after N of {}", axis, to_text(x));
  return Done{};
}

Result<Type> reduction(const NodeView& view) {
  CHECK_OK(want_float(view));
  const Shape& x = view.inputs[0].shape;
  const Ints axes = view.node.reduced_axes();
  CHECK_OK(view.node.has_attribute("axis") ? want_axis(axes[0], x) : want_axes(axes, x));
  Shape out;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const bool gone = std::count(axes.begin(), axes.end(), static_cast<int64_t>(axis)) > 0;
    if (!gone) out.push_back(x[axis]);
    if (gone && view.node.flag("keepdims")) out.push_back(1);
  }
  return Type{DType::kF32, out};
}

Result<Type> argmax(const NodeView& view) {
  CHECK_OK(want_float(view));
  Shape x = view.inputs[0].shape;
  const int64_t axis = view.node.integer("axis");
  CHECK_OK(want_axis(axis, x));
  x.erase(x.begin() + axis);
  return Type{DType::kI32, x};
}

Result<Type> slice(const NodeView& view) {
  const DType dtype = view.inputs[0].dtype;
  if (dtype != DType::kI32) CHECK_OK(want_float(view));
  Shape x = view.inputs[0].shape;
  const int64_t axis = view.node.integer("axis"), begin = view.node.integer("begin"),
                end = view.node.integer("end"), step = view.node.integer("step");
  CHECK_OK(want_axis(axis, x));
  int64_t& size = x[static_cast<size_t>(axis)];
  if (begin < 0 || end <= begin || end > size || step < 1) {
    return misfit("needs 0 <= begin < end <= {} and step >= 1, got begin={} end={} step={}", size, begin, end,
                  step);
  }
  size = (end - begin + step - 1) / step;
  return Type{dtype, x};
}

Result<Type> flip(const NodeView& view) {
  CHECK_OK(want_axes(view.node.integers("axes"), view.inputs[0].shape));
  return same(view);
}

Result<Type> expand(const NodeView& view) {
  if (view.inputs[0].dtype != DType::kF32) return misfit("needs a float, got {}", to_text(view.inputs[0]));
  const Shape &x = view.inputs[0].shape, &rows = view.inputs[1].shape;
  const Shape& shape = view.node.integers("shape");
  if (rows.empty() || rows[0] != kBatch) return misfit("the second input must have N, is {}", to_text(rows));
  const bool number = is_number(view, 0);
  if (number && view.inputs[1].dtype != DType::kF32)
    return misfit("a number is repeated in the precision of the second input: it must be a float");
  if ((shape.size() != x.size() && !number) || shape.empty() || shape[0] != kBatch)
    return misfit("shape {} must begin with N and have as many axes as {}", to_text(shape), to_text(x));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const bool fits = number || x[axis] == shape[axis] || x[axis] == 1;
    if (!fits || (axis > 0 && shape[axis] < 1))
      return misfit("{} does not expand to {}", to_text(x), to_text(shape));
  }
  return Type{DType::kF32, shape};
}

Result<Type> matmul(const NodeView& view) {
  CHECK_OK(want_float(view));
  const Shape &a = view.inputs[0].shape, &b = view.inputs[1].shape;
  const size_t rank = a.size();
  if (rank < 3 || b.size() != rank)
    return misfit("needs two inputs of the same three or more axes, got {} and {}", to_text(a), to_text(b));
  if (a[rank - 1] != b[rank - 2]) return misfit("{} and {} do not multiply", to_text(a), to_text(b));
  TRY(Shape out, joined({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2}));
  out.push_back(a[rank - 2]);
  out.push_back(b[rank - 1]);
  return Type{DType::kF32, out};
}

Result<Type> cast(const NodeView& view) {
  CHECK_OK(want_float(view));
  return Type{DType::kI32, view.inputs[0].shape};
}

Result<Type> take(const NodeView& view) {
  if (view.inputs[0].dtype != DType::kF32) return misfit("needs a float, got {}", to_text(view.inputs[0]));
  const Type& places = view.inputs[1];
  if (places.dtype != DType::kI32 || places.shape.size() != 1 || places.shape[0] == kBatch)
    return misfit("needs a vector of integers without N, got {}", to_text(places));
  Shape x = view.inputs[0].shape;
  const int64_t axis = view.node.integer("axis"), least = !x.empty() && x[0] == kBatch ? 1 : 0;
  if (axis < least || axis >= static_cast<int64_t>(x.size()))
    return misfit("axis={} is not an axis other than N of {}", axis, to_text(x));
  x[static_cast<size_t>(axis)] = places.shape[0];
  return Type{DType::kF32, x};
}

// What places of rows of their own are along an axis of x.
Status want_places(const NodeView& view) {
  const Type &x = view.inputs[0], &places = view.inputs[1];
  if (x.dtype != DType::kF32) return misfit("needs a float, got {}", to_text(x));
  if (places.dtype != DType::kI32) return misfit("needs integers as places, got {}", to_text(places));
  const int64_t axis = view.node.integer("axis");
  if (axis < 1 || axis >= static_cast<int64_t>(x.shape.size()))
    return misfit("axis={} is not an axis other than N of {}", axis, to_text(x));
  if (static_cast<int64_t>(places.shape.size()) != axis + 1 ||
      !std::equal(places.shape.begin(), places.shape.end() - 1, x.shape.begin()))
    return misfit("places {} do not have the axes of {} before axis {}, and one more", to_text(places),
                  to_text(x), axis);
  return Done{};
}

Result<Type> gather(const NodeView& view) {
  CHECK_OK(want_places(view));
  Shape shape = view.inputs[0].shape;
  shape[static_cast<size_t>(view.node.integer("axis"))] = view.inputs[1].shape.back();
  return Type{DType::kF32, shape};
}

Result<Type> scatter_add(const NodeView& view) {
  CHECK_OK(want_places(view));
  Shape shape = view.inputs[0].shape;
  int64_t& places = shape[static_cast<size_t>(view.node.integer("axis"))];
  if (places != view.inputs[1].shape.back())
    return misfit("places {} are not one for each of {}", to_text(view.inputs[1]), to_text(shape));
  places = view.node.integer("size");
  if (places < 1) return misfit("size must be at least 1");
  return Type{DType::kF32, shape};
}

Result<Type> group_norm(const NodeView& view) {
  CHECK_OK(want_float(view));
  const Shape& x = view.inputs[0].shape;
  if (x.size() < 3 || x.size() > 5)
    return misfit("needs an N,C,W, N,C,H,W or N,C,D,H,W input, got {}", to_text(x));
  const int64_t groups = view.node.integer("groups");
  if (groups < 1 || x[1] % groups != 0) return misfit("groups={} does not divide {} channels", groups, x[1]);
  CHECK_OK(want_param(view, "weight", {x[1]}));
  CHECK_OK(want_param(view, "bias", {x[1]}));
  if (view.node.real("eps") <= 0) return misfit("eps must be positive");
  return view.inputs[0];
}

Result<Type> constant(const NodeView& view) {
  if (std::isnan(view.node.real("value"))) return misfit("value must be a number");
  return Type{DType::kF32, {}};
}

Result<Type> parameter(const NodeView& view) { return Type{DType::kF32, view.param("weight")}; }

Result<Type> lrn(const NodeView& view) {
  CHECK_OK(want_float(view));
  CHECK_OK(want_rank(view, 4, "an N,C,H,W"));
  if (view.node.integer("size") < 1) return misfit("size must be at least 1");
  if (view.node.real("k") <= 0) return misfit("k must be positive");
  if (view.node.real("alpha") < 0) return misfit("alpha must not be negative");
  return view.inputs[0];
}

Result<Type> position_embedding(const NodeView& view) {
  CHECK_OK(want_float(view));
  CHECK_OK(want_rank(view, 3, "an N,T,F"));
  const Shape& x = view.inputs[0].shape;
  const Shape& w = view.param("weight");
  if (w.size() != 2 || w[0] < x[1] || w[1] != x[2]) {
    return misfit("weight must have at least {} rows of {}, is {}", x[1], x[2], to_text(w));
  }
  return view.inputs[0];
}

// One step of decoding: what q, k and v have in L places, the caches have in all.
Result<Type> cached_attention(const NodeView& view) {
  const Shape &q = view.inputs[0].shape, &k = view.inputs[1].shape;
  if (!view.node.has("keys") || !view.node.has("values") || !view.node.flag("causal"))
    return misfit("keys and values come together, and with causal=true");
  if (view.inputs.size() != 4 || view.inputs[3] != Type{DType::kI32, {kSteps}})
    return misfit("caches need the positions i32[L] of the step");
  if (q.size() != 4 || k.size() != 4 || q[1] != kSteps || k[1] != kSteps || k != view.inputs[2].shape ||
      q[3] != k[3] || q[2] % k[2] != 0)
    return misfit("q {}, k {} and v {} do not fit each other", to_text(q), to_text(k),
                  to_text(view.inputs[2].shape));
  for (const char* cache : {"keys", "values"}) {
    const Shape& held = view.param(cache);
    if (held.size() != 4 || held != Shape{kBatch, held[1], k[2], k[3]})
      return misfit("the cache {} does not fit k {}", to_text(held), to_text(k));
  }
  const int64_t window = view.node.integer("window");
  if (window < 0 || window > view.param("keys")[1]) return misfit("the window is longer than the cache");
  return Type{DType::kF32, q};
}

Result<Type> attention(const NodeView& view) {
  if (!view.node.params.empty()) return cached_attention(view);
  CHECK_OK(want_rank(view, 4, "an N,T,heads,D"));
  const Shape& q = view.inputs[0].shape;
  const Shape& k = view.inputs[1].shape;
  for (size_t i = 0; i < 3; ++i) {
    if (view.inputs[i].dtype != DType::kF32) return misfit("q, k and v must be floats");
  }
  if (view.inputs[2].shape != k) {
    return misfit("k {} and v {} differ", to_text(k), to_text(view.inputs[2].shape));
  }
  if (k.size() != 4 || k[0] != q[0] || k[3] != q[3]) {
    return misfit("q {} and k {} differ outside the axes 1 and 2", to_text(q), to_text(k));
  }
  if (q[2] % k[2] != 0) return misfit("the {} heads of q are no multiple of the {} of k", q[2], k[2]);
  if (view.node.flag("causal") && k[1] != q[1]) {
    return misfit("causal attention needs as many keys as queries, got {} and {}", k[1], q[1]);
  }
  const int64_t window = view.node.integer("window");
  if (window < 0 || window > k[1] || (window > 0 && !view.node.flag("causal")))
    return misfit("a window is a number of the {} keys of causal attention, or 0", k[1]);
  CHECK_OK(check_rate(view));
  // A query further behind the last key than the window is long would see none.
  if (window > 0 && view.inputs.size() == 4) return misfit("attention with a window takes no last key");
  if (view.inputs.size() == 4 && view.inputs[3] != Type{DType::kI32, {q[0]}}) {
    return misfit("the last key must be i32[N], is {}", to_text(view.inputs[3]));
  }
  return Type{DType::kF32, q};
}

// `gates`: blocks of rows of the weights; `biases`: the slots of the biases.
Result<Type> recurrent(const NodeView& view, int64_t gates, const std::vector<std::string>& biases) {
  CHECK_OK(want_float(view));
  CHECK_OK(want_rank(view, 3, "an N,T,F"));
  Shape x = view.inputs[0].shape;
  const Shape& hidden = view.param("weight_hh");
  if (hidden.size() != 2 || hidden[0] != gates * hidden[1]) {
    return misfit("weight_hh must be {}U,U, is {}", gates, to_text(hidden));
  }
  CHECK_OK(want_param(view, "weight_ih", {hidden[0], x[2]}));
  for (const std::string& bias : biases) {
    CHECK_OK(want_param(view, bias, {hidden[0]}));
    if (view.node.has(bias) != view.node.has(biases[0]))
      return misfit("{} and {} come together", biases[0], bias);
  }
  x[2] = hidden[1];
  return Type{DType::kF32, x};
}
Result<Type> lstm(const NodeView& view) { return recurrent(view, 4, {"bias"}); }
Result<Type> gru(const NodeView& view) { return recurrent(view, 3, {"bias_ih", "bias_hh"}); }

constexpr int64_t kLargestIgnored = int64_t{1} << 24;

Result<Type> softmax_cross_entropy(const NodeView& view) {
  const Type& logits = view.inputs[0];
  const Type& labels = view.inputs[1];
  if (logits.dtype != DType::kF32 || labels.dtype != DType::kI32) {
    return misfit("needs float logits and integer labels, got {} and {}", to_text(logits), to_text(labels));
  }
  if (logits.shape.size() < 2) return misfit("logits must be N,...,C, are {}", to_text(logits.shape));
  if (labels.shape != Shape(logits.shape.begin(), logits.shape.end() - 1)) {
    return misfit("labels {} do not fit logits {}", to_text(labels.shape), to_text(logits.shape));
  }
  const double smoothing = view.node.real("label_smoothing");
  if (smoothing < 0 || smoothing >= 1) return misfit("label_smoothing must lie in [0, 1)");
  // Float32 holds these exactly: Keras keeps targets in it.
  if (std::abs(ignore_index(view.node).value_or(0)) > kLargestIgnored)
    return misfit("ignore_index must lie in [-{0}, {0}]", kLargestIgnored);
  return Type{DType::kF32, {}};
}

Result<Type> ctc(const NodeView& view) {
  const Type& logits = view.inputs[0];
  const Type& labels = view.inputs[1];
  if (logits.dtype != DType::kF32 || labels.dtype != DType::kI32)
    return misfit("needs float logits and integer labels, got {} and {}", to_text(logits), to_text(labels));
  const Shape &x = logits.shape, &y = labels.shape;
  if (x.size() != 3 || x[2] < 2)
    return misfit("logits must be N,T,C with at least 2 classes, the first of them blank, are {}",
                  to_text(x));
  if (y.size() != 2 || y[0] != x[0])
    return misfit("labels must be N,L for logits {}, are {}", to_text(x), to_text(y));
  const ValueId target = view.node.inputs[1];
  if (!view.workload.is_input(target)) return misfit("labels must be an input of the workload");
  for (const int n : consumers(view.workload, target)) {
    const Node& reader = view.workload.nodes[static_cast<size_t>(n)];
    if (reader.op != Op::kCtc || reader.inputs[0] == target)
      return misfit("its labels '{}' are padded with -1, so that no other op can read them",
                    view.workload.value_name(target));
  }
  return Type{DType::kF32, {}};
}

Result<Type> mse(const NodeView& view) {
  CHECK_OK(want_float(view));
  if (view.inputs[0].shape != view.inputs[1].shape) {
    return misfit("prediction {} and target {} differ", to_text(view.inputs[0].shape),
                  to_text(view.inputs[1].shape));
  }
  return Type{DType::kF32, {}};
}

// Products of sizes as verify() lets them be; what is beyond 64 bits stays at their end.
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

int64_t matmul_macs(const NodeView& view, const Type& output) {
  return times(product(output.shape, 1, output.shape.size()), view.inputs[0].shape.back());
}

int64_t conv_macs(const NodeView& view, const Type& output) {
  const Shape& w = view.param("weight");
  return times(product(output.shape, 1, output.shape.size()), product(w, 1, w.size()));
}

int64_t conv_transpose_macs(const NodeView& view, const Type&) {
  const Shape &x = view.inputs[0].shape, &w = view.param("weight");
  return times(product(x, 2, x.size()), product(w, 0, w.size()));
}

int64_t linear_macs(const NodeView& view, const Type& output) {
  return times(product(output.shape, 1, output.shape.size()), view.param("weight")[1]);
}

// Queries by keys, then weights by values.
int64_t attention_macs(const NodeView& view, const Type& output) {
  return times(2 * product(output.shape, 1, 4), view.inputs[1].shape[1]);
}

int64_t recurrent_macs(const NodeView& view, const Type& output) {
  return times(output.shape[1], elements(view.param("weight_ih")) + elements(view.param("weight_hh")));
}

int64_t embedding_rows(const NodeView& view) { return view.param("weight")[0]; }
int64_t classes(const NodeView& view) { return view.inputs[0].shape.back(); }
int64_t gathered(const NodeView& view) {
  return view.inputs[0].shape[static_cast<size_t>(view.node.integer("axis"))];
}
int64_t scattered(const NodeView& view) { return view.node.integer("size"); }
int64_t attention_keys(const NodeView& view) { return view.inputs[1].shape[1]; }

}  // namespace bakeoff::ir::rules
