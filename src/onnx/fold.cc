// Computes ops whose inputs are all constants, as numpy would: one function from arrays to arrays per op.
// Exporters leave shapes, masks, positions and rearranged weights as ops for the runtime to fold.
//
// Speed hardly matters here, so operations on axes are lists of indices (picked() of array.h), and
// operations on elements are loops over expanded operands. A file may be hostile: indices are checked
// before use, and Add, Sub and Mul of integers wrap, because signed overflow is undefined.
//
// Reals are doubles, also where the file has 32 bits; the proof compares the results.

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

Result<Arrays> one(Result<ArrayPtr> array) {
  if (!array) return array.error();
  return Arrays{*array};
}

Status want(const Arrays& in, size_t least) {
  for (size_t i = 0; i < least; ++i) {
    if (i >= in.size() || in[i] == nullptr) return refused("an input is missing");
  }
  return Done{};
}

constexpr size_t kMostMade = size_t{1} << 26;

// A file of a few bytes must not ask for gigabytes: what is made has this many numbers at most, or as many as an input.
Status check_size(const Shape& made, const Arrays& in) {
  size_t most = kMostMade;
  for (const ArrayPtr& one : in) most = std::max(most, one == nullptr ? 0 : one->size());
  TRY(const int64_t elements, count(made, static_cast<int64_t>(most)));
  static_cast<void>(elements);
  return Done{};
}

// Element by element with broadcasting, as floats or as integers.
template <typename OfReals, typename OfInts>
Result<ArrayPtr> combined(const ArrayPtr& a, const ArrayPtr& b, OfReals of_reals, OfInts of_ints_,
                          bool compares = false) {
  TRY(const Shape shape, broadcast(a->shape, b->shape));
  CHECK_OK(check_size(shape, {a, b}));
  TRY(const ArrayPtr x, expanded(a, shape));
  TRY(const ArrayPtr y, expanded(b, shape));
  auto made = std::make_shared<Array>();
  made->shape = shape;
  const bool reals = x->is_float() || y->is_float();
  made->kind = compares ? Kind::kBool : reals ? Kind::kFloat : x->kind;
  for (size_t i = 0; i < x->size(); ++i) {
    if (compares)
      made->ints.push_back(static_cast<int64_t>(reals ? of_reals(x->real(i), y->real(i)) != 0
                                                      : of_ints_(x->ints[i], y->ints[i]) != 0));
    else if (reals)
      made->reals.push_back(static_cast<double>(of_reals(x->real(i), y->real(i))));
    else
      made->ints.push_back(static_cast<int64_t>(of_ints_(x->ints[i], y->ints[i])));
  }
  return ArrayPtr(std::move(made));
}

// Wraps as hardware does; a sum of sizes in a hostile file must not be undefined.
int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }
uint64_t bits(int64_t v) { return static_cast<uint64_t>(v); }

template <typename OfReals, typename OfInts>
Result<Arrays> binary(const Arrays& in, OfReals of_reals, OfInts of_ints_, bool compares = false) {
  CHECK_OK(want(in, 2));
  return one(combined(in[0], in[1], of_reals, of_ints_, compares));
}

template <typename Formula>
Result<Arrays> unary(const Arrays& in, Formula formula) {
  CHECK_OK(want(in, 1));
  auto made = std::make_shared<Array>(*in[0]);
  if (!made->is_float()) return refused("computes a real function of integers");
  for (double& x : made->reals) x = formula(x);
  return Arrays{made};
}

#define BAKEOFF_BINARY_FOLD(of_reals, of_integers, compares)                                               \
  +[](const Call&, const Arrays& in) {                                                                     \
    return binary(                                                                                         \
        in, [](double a, double b) { return of_reals; }, [](int64_t a, int64_t b) { return of_integers; }, \
        compares);                                                                                         \
  }
#define BAKEOFF_UNARY_FOLD(formula) \
  +[](const Call&, const Arrays& in) { return unary(in, [](double a) { return formula; }); }

int64_t divided(int64_t a, int64_t b) { return b == 0 || (b == -1) ? wrap(0 - bits(a)) * (b == -1) : a / b; }
int64_t remainder(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Result<Arrays> constant(const Call& call, const Arrays&) {
  if (call.has_attribute("value")) return one(call.array("value"));
  if (call.has_attribute("value_float")) return Arrays{of_real(call.real("value_float", 0))};
  if (call.has_attribute("value_int"))
    return Arrays{std::make_shared<Array>(Array{Kind::kInt, {}, {}, {call.integer("value_int", 0)}})};
  if (call.has_attribute("value_ints")) return Arrays{of_ints(call.integers("value_ints"))};
  if (call.has_attribute("value_floats")) {
    std::vector<double> numbers = call.reals("value_floats");
    for (double& x : numbers) x = shortest(x);
    const auto size = static_cast<int64_t>(numbers.size());
    return Arrays{std::make_shared<Array>(Array{Kind::kFloat, {size}, std::move(numbers), {}})};
  }
  return refused("it holds no numbers");
}

Result<Arrays> constant_of_shape(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  CHECK_OK(check_size(in[0]->ints, {}));
  if (!call.has_attribute("value")) return Arrays{filled(Kind::kFloat, in[0]->ints, 0)};
  TRY(const ArrayPtr value, call.array("value"));
  if (value->size() != 1) return refused("its value is no scalar");
  return Arrays{filled(value->kind, in[0]->ints, value->real(0))};
}

Result<Arrays> shape(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  const Shape& s = in[0]->shape;
  const auto rank = static_cast<int64_t>(s.size());
  int64_t start = call.integer("start", 0), end = call.integer("end", rank);
  start = std::clamp(start < 0 ? start + rank : start, int64_t{0}, rank);
  end = std::clamp(end < 0 ? end + rank : end, int64_t{0}, rank);
  return Arrays{of_ints(start < end ? Ints(s.begin() + start, s.begin() + end) : Ints{})};
}

Result<Arrays> size(const Call&, const Arrays& in) {
  CHECK_OK(want(in, 1));
  return Arrays{std::make_shared<Array>(Array{Kind::kInt, {}, {}, {static_cast<int64_t>(in[0]->size())}})};
}

Result<Arrays> reshape(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  Ints target = call.integers("shape");
  if (!call.has_attribute("shape")) {
    CHECK_OK(want(in, 2));
    target = in[1]->ints;
  }
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && call.integer("allowzero", 0) == 0) {
      if (i >= in[0]->shape.size()) return refused("its shape does not fit");
      target[i] = in[0]->shape[i];
    }
    if (target[i] < 0) {
      if (open >= 0 || target[i] != -1) return refused("its shape does not fit");
      open = static_cast<int64_t>(i);
    } else if (target[i] > kMostElements || known * target[i] > kMostElements) {
      return refused("its shape is too large");
    } else {
      known *= target[i];
    }
  }
  const auto all = static_cast<int64_t>(in[0]->size());
  if (open >= 0) target[static_cast<size_t>(open)] = known == 0 ? 0 : all / known;
  TRY(const int64_t now, count(target));
  if (now != all) return refused("its shape does not fit");
  return Arrays{shaped(*in[0], target)};
}

Result<Arrays> flatten(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  const Shape& s = in[0]->shape;
  const auto rank = static_cast<int64_t>(s.size());
  int64_t axis = call.integer("axis", 1);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis > rank) return refused("its axis does not exist");
  Shape made = {1, 1};
  for (int64_t i = 0; i < rank; ++i) made[i < axis ? 0 : 1] *= s[static_cast<size_t>(i)];
  return Arrays{shaped(*in[0], made)};
}

Result<Ints> axes_of(const Call& call, const Arrays& in, size_t rank) {
  Ints axes = call.integers("axes");
  if (in.size() > 1 && in[1] != nullptr) axes = in[1]->ints;
  for (int64_t& axis : axes) {
    TRY(const size_t at, axis_of(axis, rank));
    axis = static_cast<int64_t>(at);
  }
  return axes;
}

Result<Arrays> squeeze(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  TRY(const Ints axes, axes_of(call, in, in[0]->shape.size()));
  Shape made;
  for (size_t i = 0; i < in[0]->shape.size(); ++i) {
    const bool named = std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) > 0;
    const bool drop = named || (axes.empty() && in[0]->shape[i] == 1);
    if (drop && in[0]->shape[i] != 1) return refused("an axis that vanishes has more than one element");
    if (!drop) made.push_back(in[0]->shape[i]);
  }
  return Arrays{shaped(*in[0], made)};
}

Result<Arrays> unsqueeze(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  const size_t more = in.size() > 1 && in[1] ? in[1]->size() : call.integers("axes").size();
  if (more > kMostAxes) return refused("it has too many axes");
  TRY(const Ints axes, axes_of(call, in, in[0]->shape.size() + more));
  Shape made;
  for (size_t i = 0, from = 0; i < in[0]->shape.size() + more; ++i) {
    const bool fresh = std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) > 0;
    if (!fresh && from >= in[0]->shape.size()) return refused("its axes repeat");
    made.push_back(fresh ? 1 : in[0]->shape[from++]);
  }
  return Arrays{shaped(*in[0], made)};
}

Result<Arrays> transpose(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  Ints perm(in[0]->shape.size());
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(perm.size() - 1 - i);
  perm = call.integers("perm", perm);
  Ints sorted = perm, axes(in[0]->shape.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(axes.begin(), axes.end(), 0);
  if (sorted != axes) return refused("perm is no permutation");
  return Arrays{transposed(*in[0], perm)};
}

Result<Arrays> concat(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, in.empty() ? 1 : in.size()));
  TRY(const size_t axis, axis_of(call.integer("axis", 1), in[0]->shape.size()));
  for (const ArrayPtr& other : in) {
    if (other->shape.size() != in[0]->shape.size() || other->is_float() != in[0]->is_float())
      return refused("its inputs do not fit");
    for (size_t i = 0; i < other->shape.size(); ++i) {
      if (i != axis && other->shape[i] != in[0]->shape[i]) return refused("its inputs do not fit");
    }
  }
  Shape made = in[0]->shape;
  made[axis] = 0;
  for (const ArrayPtr& one : in) made[axis] += one->shape[axis];
  TRY(const int64_t elements, count(made));
  static_cast<void>(elements);
  return Arrays{joined(in, axis)};
}

Result<Arrays> gather(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 2));
  TRY(const size_t axis, axis_of(call.integer("axis", 0), in[0]->shape.size()));
  const int64_t extent = in[0]->shape[axis];
  for (const int64_t id : in[1]->ints) {
    if (id < -extent || id >= extent) return refused("an index is out of range");
  }
  if (in[1]->is_float()) return refused("its indices are no integers");
  Shape made = in[0]->shape;
  made[axis] = static_cast<int64_t>(in[1]->size());
  CHECK_OK(check_size(made, in));
  return Arrays{taken(*in[0], axis, *in[1])};
}

Result<Arrays> slice(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  Ints starts = call.integers("starts"), ends = call.integers("ends"), axes = call.integers("axes"), steps;
  if (call.opset >= 10) {
    CHECK_OK(want(in, 3));
    starts = in[1]->ints;
    ends = in[2]->ints;
    if (in.size() > 3 && in[3]) axes = in[3]->ints;
    if (in.size() > 4 && in[4]) steps = in[4]->ints;
  }
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return refused("its inputs do not fit");
  ArrayPtr x = in[0];
  for (size_t i = 0; i < starts.size(); ++i) {
    TRY(const size_t axis, axis_of(axes[i], x->shape.size()));
    const int64_t n = x->shape[axis], step = std::clamp<int64_t>(steps[i], -n - 1, n + 1);
    if (steps[i] == 0) return refused("a step is 0");
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const auto place = [&](int64_t at) {
      return std::clamp(at < 0 ? (at < -n ? low : at + n) : at, low, high);
    };
    const int64_t begin = place(starts[i]), end = place(ends[i]);
    const int64_t number = step > 0 ? std::max<int64_t>((end - begin + step - 1) / step, 0)
                                    : std::max<int64_t>((begin - end - step - 1) / -step, 0);
    x = sliced(*x, axis, begin, number, step);
  }
  return Arrays{x};
}

Result<Arrays> expand(const Call&, const Arrays& in) {
  CHECK_OK(want(in, 2));
  TRY(const Shape shape_, broadcast(in[0]->shape, in[1]->ints));
  CHECK_OK(check_size(shape_, in));
  return one(expanded(in[0], shape_));
}

Result<Arrays> tile(const Call&, const Arrays& in) {
  CHECK_OK(want(in, 2));
  if (in[1]->ints.size() != in[0]->shape.size()) return refused("its repeats do not fit");
  Shape whole = in[0]->shape;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (in[1]->ints[i] < 0 || in[1]->ints[i] > kMostElements) return refused("its repeats do not fit");
    whole[i] = whole[i] == 0 ? 0 : whole[i] * in[1]->ints[i];
  }
  CHECK_OK(check_size(whole, in));
  ArrayPtr x = in[0];
  for (size_t i = 0; i < whole.size(); ++i) {
    Ints ids(static_cast<size_t>(whole[i]));
    for (size_t k = 0; k < ids.size(); ++k) ids[k] = static_cast<int64_t>(k) % x->shape[i];
    x = taken(*x, i, *of_ints(std::move(ids)));
  }
  return Arrays{x};
}

Result<Arrays> cast(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  Kind to = Kind::kFloat;
  if (call.op() == "CastLike") {
    CHECK_OK(want(in, 2));
    to = in[1]->kind;
  } else {
    TRY(to, kind_of(static_cast<int32_t>(call.integer("to", 1))));
  }
  return one(converted(in[0], to));
}

// How many numbers there are from `start` until `limit`. Of integers their differences may need 65 bits.
template <typename T>
Result<int64_t> steps(T start, T limit, T delta) {
  if (delta == 0) return refused("its step is 0");
  if (delta > 0 ? start >= limit : start <= limit) return int64_t{0};
  double number = 0;
  if constexpr (std::is_floating_point_v<T>) {
    number = std::ceil((limit - start) / delta);
  } else {
    const uint64_t way = delta > 0 ? bits(limit) - bits(start) : bits(start) - bits(limit);
    const uint64_t step = delta > 0 ? bits(delta) : 0 - bits(delta);
    number = static_cast<double>((way - 1) / step + 1);
  }
  if (!(number <= static_cast<double>(kMostMade)))
    return refused(fmt::format("it has {:.3g} numbers", number));
  return static_cast<int64_t>(number);
}

Result<Arrays> range(const Call&, const Arrays& in) {
  CHECK_OK(want(in, 3));
  for (const ArrayPtr& a : in) {
    if (a->size() != 1) return refused("its inputs are no scalars");
    if (a->kind != in[0]->kind) return refused("its inputs are of different types");
  }
  const bool reals = in[0]->is_float();
  TRY(const int64_t number, reals ? steps(in[0]->reals[0], in[1]->reals[0], in[2]->reals[0])
                                  : steps(in[0]->ints[0], in[1]->ints[0], in[2]->ints[0]));
  auto made = std::make_shared<Array>(Array{in[0]->kind, {number}, {}, {}});
  for (int64_t i = 0; i < number; ++i) {
    if (reals)
      made->reals.push_back(in[0]->reals[0] + static_cast<double>(i) * in[2]->reals[0]);
    else
      made->ints.push_back(wrap(bits(in[0]->ints[0]) + bits(i) * bits(in[2]->ints[0])));
  }
  return Arrays{made};
}

Result<Arrays> where(const Call&, const Arrays& in) {
  CHECK_OK(want(in, 3));
  TRY(const Shape ab, broadcast(in[1]->shape, in[2]->shape));
  TRY(const Shape all, broadcast(ab, in[0]->shape));
  CHECK_OK(check_size(all, in));
  if (in[0]->is_float()) return refused("its condition is of reals");
  TRY(const ArrayPtr c, expanded(in[0], all));
  TRY(const ArrayPtr a, expanded(in[1], all));
  TRY(const ArrayPtr b, expanded(in[2], all));
  if (a->is_float() != b->is_float()) return refused("its inputs do not fit");
  auto made = std::make_shared<Array>(*a);
  for (size_t i = 0; i < c->size(); ++i) {
    if (c->ints[i] != 0) continue;
    if (a->is_float())
      made->reals[i] = b->reals[i];
    else
      made->ints[i] = b->ints[i];
  }
  return Arrays{made};
}

Result<Arrays> trilu(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  auto made = std::make_shared<Array>(*in[0]);
  const size_t rank = made->shape.size();
  if (rank < 2) return refused("it is no matrix");
  const int64_t h = made->shape[rank - 2], w = made->shape[rank - 1];
  const bool given = in.size() > 1 && in[1] != nullptr;
  if (given && in[1]->ints.size() != 1) return refused("its diagonal is no integer");
  const int64_t k = given ? in[1]->ints[0] : 0;
  const bool upper = call.integer("upper", 1) != 0;
  for (size_t at = 0; at < made->size(); ++at) {
    const auto flat = static_cast<int64_t>(at) % (h * w), i = flat / w, j = flat % w;
    if (upper ? j - i >= k : j - i <= k) continue;
    if (made->is_float())
      made->reals[at] = 0;
    else
      made->ints[at] = 0;
  }
  return Arrays{made};
}

enum class Reduction { kSum, kProd, kMax, kMin, kMean, kL1, kL2, kSquares };

// Moves the reduced axes to the end, so that the elements of each result follow one another.
Result<Arrays> reduce(const Call& call, const Arrays& in, Reduction rule) {
  CHECK_OK(want(in, 1));
  const Array& x = *in[0];
  TRY(Ints axes, axes_of(call, in, x.shape.size()));
  if (axes.empty()) {
    if (call.integer("noop_with_empty_axes", 0) != 0) return Arrays{in[0]};
    axes.resize(x.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  Ints perm;
  Shape kept, plain;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const bool gone = std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) > 0;
    if (!gone) perm.push_back(static_cast<int64_t>(i)), plain.push_back(x.shape[i]);
    kept.push_back(gone ? 1 : x.shape[i]);
  }
  perm.insert(perm.end(), axes.begin(), axes.end());
  if (perm.size() != x.shape.size()) return refused("its axes repeat");
  ArrayPtr lined = transposed(x, perm);
  if (rule >= Reduction::kL1) {
    if (!x.is_float()) return refused("computes a real function of integers");
    auto sizes = std::make_shared<Array>(*lined);
    for (double& one : sizes->reals) one = rule == Reduction::kL1 ? std::abs(one) : one * one;
    lined = std::move(sizes);
  }
  const auto results = static_cast<size_t>(tensor::elements(plain));
  const size_t each = results == 0 ? 0 : x.size() / results;
  if (each == 0) return refused("reduces nothing");
  auto made = std::make_shared<Array>(Array{x.kind, call.integer("keepdims", 1) != 0 ? kept : plain, {}, {}});
  for (size_t r = 0; r < results; ++r) {
    double real = lined->real(r * each);
    int64_t whole = x.is_float() ? 0 : lined->ints[r * each];
    for (size_t i = 1; i < each; ++i) {
      const double next = lined->real(r * each + i);
      const int64_t n = x.is_float() ? 0 : lined->ints[r * each + i];
      switch (rule) {
        case Reduction::kProd:
          real *= next, whole = wrap(bits(whole) * bits(n));
          break;
        case Reduction::kMax:
          real = std::max(real, next), whole = std::max(whole, n);
          break;
        case Reduction::kMin:
          real = std::min(real, next), whole = std::min(whole, n);
          break;
        default:
          real += next, whole = wrap(bits(whole) + bits(n));
          break;
      }
    }
    if (rule == Reduction::kL2) real = std::sqrt(real);
    if (rule == Reduction::kMean) real /= static_cast<double>(each), whole /= static_cast<int64_t>(each);
    if (x.is_float())
      made->reals.push_back(real);
    else
      made->ints.push_back(whole);
  }
  return Arrays{made};
}

Result<Arrays> split(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 1));
  TRY(const size_t axis, axis_of(call.integer("axis", 0), in[0]->shape.size()));
  Ints sizes = in.size() > 1 && in[1] ? in[1]->ints : call.integers("split");
  const int64_t all = in[0]->shape[axis], parts = call.integer("num_outputs", call.node.output_size());
  if (sizes.empty()) {
    if (parts < 1 || parts > call.node.output_size()) return refused("its outputs are not num_outputs");
    const int64_t each = (all + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(all - i * each, 0, each));
  }
  Arrays made;
  int64_t begin = 0;
  for (const int64_t n : sizes) {
    if (n < 0 || n > all - begin) return refused("its sizes do not fit");
    made.push_back(sliced(*in[0], axis, begin, n));
    begin += n;
  }
  return made;
}

Result<Arrays> cumsum(const Call& call, const Arrays& in) {
  CHECK_OK(want(in, 2));
  auto made = std::make_shared<Array>(*in[0]);
  if (in[1]->ints.size() != 1) return refused("its axis is no integer");
  TRY(const size_t axis, axis_of(in[1]->ints[0], made->shape.size()));
  const bool reverse = call.integer("reverse", 0) != 0, exclusive = call.integer("exclusive", 0) != 0;
  int64_t step = 1;
  for (size_t i = axis + 1; i < made->shape.size(); ++i) step *= made->shape[i];
  const int64_t size = made->shape[axis], all = static_cast<int64_t>(made->size());
  for (int64_t line = 0; line < (size == 0 ? 0 : all / size); ++line) {
    double real = 0;
    uint64_t whole = 0;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t place = reverse ? size - 1 - i : i;
      const auto at = static_cast<size_t>(line / step * size * step + place * step + line % step);
      const double before = real;
      const uint64_t whole_before = whole;
      if (made->is_float())
        real += made->reals[at], made->reals[at] = exclusive ? before : real;
      else
        whole += bits(made->ints[at]), made->ints[at] = wrap(exclusive ? whole_before : whole);
    }
  }
  return Arrays{made};
}

Result<Arrays> non_zero(const Call&, const Arrays& in) {
  CHECK_OK(want(in, 1));
  const Shape& s = in[0]->shape;
  std::vector<Ints> places(s.size());
  for (size_t at = 0; at < in[0]->size(); ++at) {
    if (in[0]->real(at) == 0) continue;
    auto rest = static_cast<int64_t>(at);
    Ints place(s.size());
    for (size_t i = s.size(); i-- > 0;) place[i] = rest % s[i], rest /= s[i];
    for (size_t i = 0; i < s.size(); ++i) places[i].push_back(place[i]);
  }
  Array made{
      .kind = Kind::kInt,
      .shape = {static_cast<int64_t>(s.size()), places.empty() ? 0 : static_cast<int64_t>(places[0].size())}};
  for (const Ints& row : places) made.ints.insert(made.ints.end(), row.begin(), row.end());
  return Arrays{std::make_shared<Array>(std::move(made))};
}

Result<Arrays> identity(const Call&, const Arrays& in) {
  CHECK_OK(want(in, 1));
  return Arrays{in[0]};
}

Result<Arrays> logical_not(const Call&, const Arrays& in) {
  CHECK_OK(want(in, 1));
  auto made = std::make_shared<Array>(*in[0]);
  for (int64_t& a : made->ints) a = a == 0 ? 1 : 0;
  return Arrays{made};
}

// Of integers too.
Result<Arrays> negated(const Call&, const Arrays& in) {
  CHECK_OK(want(in, 1));
  auto made = std::make_shared<Array>(*in[0]);
  for (double& a : made->reals) a = -a;
  for (int64_t& a : made->ints) a = wrap(0 - bits(a));
  return Arrays{made};
}

#define BAKEOFF_REDUCE_FOLD(rule) \
  +[](const Call& call, const Arrays& in) { return reduce(call, in, Reduction::rule); }

std::map<std::string, Fold> shape_folds() {
  return {
      {"Constant", constant},
      {"ConstantOfShape", constant_of_shape},
      {"Shape", shape},
      {"Size", size},
      {"Reshape", reshape},
      {"Flatten", flatten},
      {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze},
      {"Transpose", transpose},
      {"Concat", concat},
      {"Gather", gather},
      {"Slice", slice},
      {"Expand", expand},
      {"Tile", tile},
      {"Cast", cast},
      {"CastLike", cast},
      {"Range", range},
      {"Where", where},
      {"Trilu", trilu},
      {"Split", split},
      {"CumSum", cumsum},
      {"NonZero", non_zero},
      {"Identity", identity},
      {"Not", logical_not},
      {"Neg", negated},
      {"ReduceSum", BAKEOFF_REDUCE_FOLD(kSum)},
      {"ReduceProd", BAKEOFF_REDUCE_FOLD(kProd)},
      {"ReduceMax", BAKEOFF_REDUCE_FOLD(kMax)},
      {"ReduceMin", BAKEOFF_REDUCE_FOLD(kMin)},
      {"ReduceMean", BAKEOFF_REDUCE_FOLD(kMean)},
      {"ReduceL1", BAKEOFF_REDUCE_FOLD(kL1)},
      {"ReduceL2", BAKEOFF_REDUCE_FOLD(kL2)},
      {"ReduceSumSquare", BAKEOFF_REDUCE_FOLD(kSquares)},
  };
}

std::map<std::string, Fold> number_folds() {
  return {
      {"Add", BAKEOFF_BINARY_FOLD(a + b, wrap(bits(a) + bits(b)), false)},
      {"Sub", BAKEOFF_BINARY_FOLD(a - b, wrap(bits(a) - bits(b)), false)},
      {"Mul", BAKEOFF_BINARY_FOLD(a * b, wrap(bits(a) * bits(b)), false)},
      {"Div", BAKEOFF_BINARY_FOLD(a / b, divided(a, b), false)},
      {"Pow",
       BAKEOFF_BINARY_FOLD(std::pow(a, b),
                           std::llround(std::pow(static_cast<double>(a), static_cast<double>(b))), false)},
      {"Min", BAKEOFF_BINARY_FOLD(std::min(a, b), std::min(a, b), false)},
      {"Max", BAKEOFF_BINARY_FOLD(std::max(a, b), std::max(a, b), false)},
      {"Equal", BAKEOFF_BINARY_FOLD(a == b, a == b, true)},
      {"Less", BAKEOFF_BINARY_FOLD(a < b, a < b, true)},
      {"LessOrEqual", BAKEOFF_BINARY_FOLD(a <= b, a <= b, true)},
      {"Greater", BAKEOFF_BINARY_FOLD(a > b, a > b, true)},
      {"GreaterOrEqual", BAKEOFF_BINARY_FOLD(a >= b, a >= b, true)},
      {"And", BAKEOFF_BINARY_FOLD(a != 0 && b != 0, a != 0 && b != 0, true)},
      {"Or", BAKEOFF_BINARY_FOLD(a != 0 || b != 0, a != 0 || b != 0, true)},
      {"Xor", BAKEOFF_BINARY_FOLD((a != 0) != (b != 0), (a != 0) != (b != 0), true)},
      {"Mod",
       +[](const Call& call, const Arrays& in) -> Result<Arrays> {
         CHECK_OK(want(in, 2));
         if (in[0]->is_float() || call.integer("fmod", 0) != 0) return refused("it is of reals");
         return one(combined(
             in[0], in[1], [](double a, double b) { return std::fmod(a, b); },
             [](int64_t a, int64_t b) { return remainder(a, b); }));
       }},
      {"Floor", BAKEOFF_UNARY_FOLD(std::floor(a))},
      {"Ceil", BAKEOFF_UNARY_FOLD(std::ceil(a))},
      {"Round", BAKEOFF_UNARY_FOLD(std::nearbyint(a))},
      {"Sqrt", BAKEOFF_UNARY_FOLD(std::sqrt(a))},
      {"Exp", BAKEOFF_UNARY_FOLD(std::exp(a))},
      {"Log", BAKEOFF_UNARY_FOLD(std::log(a))},
      {"Sin", BAKEOFF_UNARY_FOLD(std::sin(a))},
      {"Cos", BAKEOFF_UNARY_FOLD(std::cos(a))},
      {"Tanh", BAKEOFF_UNARY_FOLD(std::tanh(a))},
      {"Sigmoid", BAKEOFF_UNARY_FOLD(1 / (1 + std::exp(-a)))},
      {"Softplus", BAKEOFF_UNARY_FOLD(std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a))))},
      {"Erf", BAKEOFF_UNARY_FOLD(std::erf(a))},
      {"Reciprocal", BAKEOFF_UNARY_FOLD(1 / a)},
      {"Abs",
       +[](const Call&, const Arrays& in) -> Result<Arrays> {
         CHECK_OK(want(in, 1));
         auto made = std::make_shared<Array>(*in[0]);
         for (double& a : made->reals) a = std::abs(a);
         for (int64_t& a : made->ints) a = a < 0 ? wrap(0 - bits(a)) : a;
         return Arrays{made};
       }},
  };
}

}  // namespace

const std::map<std::string, Fold>& folds() {
  static const std::map<std::string, Fold> all = [] {
    auto joined_ = shape_folds();
    joined_.merge(number_folds());
    joined_.insert(place_folds().begin(), place_folds().end());
    return joined_;
  }();
  return all;
}

}  // namespace bakeoff::onnx
