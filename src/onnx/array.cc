// Exporters compute shapes and constants with ops (Shape, Gather, Concat, Slice) that are gone once they are
// folded. The numbers are computed here as ONNX defines them. With each element go the places in the weights
// that it was read from (its origins; several where weights were added): an array of rearranged or added
// weights stays trained, and one that was computed in another way does not.

#include "onnx/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bakeoff::onnx {
namespace {

Ints strides_of(const Shape& shape) {
  Ints strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// Flat source indices of a walk over `shape`, by a stride for each axis.
std::vector<size_t> walk(const Shape& shape, const Ints& strides, int64_t first = 0) {
  std::vector<size_t> at(static_cast<size_t>(tensor::elements(shape)));
  Ints place(shape.size(), 0);
  int64_t from = first;
  for (size_t& one : at) {
    one = static_cast<size_t>(from);
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++place[axis] < shape[axis]) break;
      from -= place[axis] * strides[axis];
      place[axis] = 0;
    }
  }
  return at;
}

void set_origins(Array& made, Ints origins) {
  bool run = !origins.empty() && origins.size() == made.size();
  for (size_t i = 0; run && i < origins.size(); ++i)
    run = origins[i] >= 0 && origins[i] == origins[0] + static_cast<int64_t>(i);
  made.first = run ? origins[0] : -1;
  if (!run && std::ranges::any_of(origins, [](int64_t one) { return one >= 0; }))
    made.origins = std::move(origins);
}

}  // namespace

ArrayPtr of_ints(Ints numbers) {
  const auto size = static_cast<int64_t>(numbers.size());
  return std::make_shared<Array>(Array{Kind::kInt, {size}, {}, std::move(numbers)});
}

ArrayPtr of_real(double number) { return std::make_shared<Array>(Array{Kind::kFloat, {}, {number}, {}}); }

ArrayPtr shaped(const Array& array, Shape shape) {
  auto copy = std::make_shared<Array>(array);
  copy->shape = std::move(shape);
  return copy;
}

ArrayPtr filled(Kind kind, Shape shape, double value) {
  const auto size = static_cast<size_t>(tensor::elements(shape));
  auto made = std::make_shared<Array>(Array{kind, std::move(shape), {}, {}});
  if (kind == Kind::kFloat)
    made->reals.assign(size, value);
  else
    made->ints.assign(size, static_cast<int64_t>(value));
  return made;
}

ArrayPtr without_origins(const ArrayPtr& array) {
  if (array == nullptr || !array->has_origins()) return array;
  auto copy = std::make_shared<Array>(*array);
  copy->first = -1;
  copy->origins.clear();
  return copy;
}

ArrayPtr picked(const Array& array, Shape shape, const std::vector<size_t>& at) {
  auto made = std::make_shared<Array>(Array{array.kind, std::move(shape), {}, {}});
  if (array.is_float()) {
    made->reals.reserve(at.size());
    for (const size_t i : at) made->reals.push_back(array.reals[i]);
  } else {
    made->ints.reserve(at.size());
    for (const size_t i : at) made->ints.push_back(array.ints[i]);
  }
  if (!array.has_origins()) return made;
  Ints origins;
  for (size_t summand = 0; summand < array.summands(); ++summand) {
    for (const size_t i : at) origins.push_back(array.origin(summand * array.size() + i));
  }
  set_origins(*made, std::move(origins));
  return made;
}

ArrayPtr transposed(const Array& array, const Ints& perm) {
  const Ints strides = strides_of(array.shape);
  Shape shape;
  Ints moved;
  for (const int64_t axis : perm) {
    shape.push_back(array.shape[static_cast<size_t>(axis)]);
    moved.push_back(strides[static_cast<size_t>(axis)]);
  }
  const auto at = walk(shape, moved);
  return picked(array, std::move(shape), at);
}

ArrayPtr sliced(const Array& array, size_t axis, int64_t begin, int64_t number, int64_t step) {
  Ints strides = strides_of(array.shape);
  Shape shape = array.shape;
  shape[axis] = number;
  const int64_t first = begin * strides[axis];
  strides[axis] *= step;
  const auto at = walk(shape, strides, first);
  return picked(array, std::move(shape), at);
}

ArrayPtr joined(const std::vector<ArrayPtr>& arrays, size_t axis) {
  Shape shape = arrays[0]->shape;
  shape[axis] = 0;
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (const ArrayPtr& one : arrays) shape[axis] += one->shape[axis];
  if (outer == 0) return filled(arrays[0]->kind, shape, 0);
  auto made = std::make_shared<Array>(Array{arrays[0]->kind, shape, {}, {}});
  const bool tracked = std::ranges::any_of(arrays, [](const ArrayPtr& one) { return one->has_origins(); });
  Ints origins;
  for (int64_t row = 0; row < outer; ++row) {
    for (const ArrayPtr& one : arrays) {
      const auto width = static_cast<int64_t>(one->size()) / outer;
      for (int64_t i = row * width; tracked && i < (row + 1) * width; ++i)
        origins.push_back(one->origin(static_cast<size_t>(i)));
      const auto copy = [&](const auto& from, auto& to) {
        to.insert(to.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
      };
      if (made->is_float())
        copy(one->reals, made->reals);
      else
        copy(one->ints, made->ints);
    }
  }
  set_origins(*made, std::move(origins));
  return made;
}

ArrayPtr taken(const Array& array, size_t axis, const Array& ids) {
  Shape shape(array.shape.begin(), array.shape.begin() + static_cast<int64_t>(axis));
  shape.insert(shape.end(), ids.shape.begin(), ids.shape.end());
  shape.insert(shape.end(), array.shape.begin() + static_cast<int64_t>(axis) + 1, array.shape.end());
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= array.shape[i];
  for (size_t i = axis + 1; i < array.shape.size(); ++i) inner *= array.shape[i];
  std::vector<size_t> at;
  const int64_t size = array.shape[axis];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t id : ids.ints) {
      if (id < 0) id += size;
      for (int64_t i = 0; i < inner; ++i) at.push_back(static_cast<size_t>((o * size + id) * inner + i));
    }
  }
  return picked(array, std::move(shape), at);
}

Result<int64_t> count(const Shape& shape, int64_t most) {
  if (shape.size() > kMostAxes)
    return Error{.message = fmt::format("a shape has {} axes, more than {}", shape.size(), kMostAxes)};
  int64_t product = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0)
      return Error{.message = fmt::format("the shape {} has a negative size", tensor::to_text(shape))};
    empty |= size == 0;
    if (size == 0) continue;
    // Also beside a size of 0: strides are products of the others.
    if (product > most / size)
      return Error{.message =
                       fmt::format("the shape {} has more than {} numbers", tensor::to_text(shape), most)};
    product *= size;
  }
  return empty ? 0 : product;
}

Result<ArrayPtr> converted(const ArrayPtr& array, Kind to) {
  if (to == array->kind) return array;
  auto made = std::make_shared<Array>(Array{to, array->shape, {}, {}});
  for (size_t i = 0; i < array->size(); ++i) {
    const double value = array->real(i);
    if (to == Kind::kFloat)
      made->reals.push_back(value);
    else if (to == Kind::kBool)
      made->ints.push_back(value != 0 ? 1 : 0);
    else if (!array->is_float())
      made->ints.push_back(array->ints[i]);
    else if (std::abs(value) < 9e18)
      made->ints.push_back(static_cast<int64_t>(value));
    else
      return Error{.message = fmt::format("the number {} does not fit an integer", value)};
  }
  return ArrayPtr(std::move(made));
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return Error{.message =
                       fmt::format("{} and {} do not broadcast", tensor::to_text(a), tensor::to_text(b))};
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  TRY(const int64_t ignored, count(out));
  static_cast<void>(ignored);
  return out;
}

Result<ArrayPtr> expanded(const ArrayPtr& array, const Shape& shape) {
  if (array->shape == shape) return array;
  TRY(const Shape out, broadcast(array->shape, shape));
  const Ints own = strides_of(array->shape);
  Ints strides(out.size(), 0);
  for (size_t i = 0; i < own.size(); ++i) {
    if (array->shape[i] != 1) strides[out.size() - own.size() + i] = own[i];
  }
  return picked(*array, out, walk(out, strides));
}

Result<size_t> axis_of(int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r)
    return Error{.message = fmt::format("axis {} does not exist in {} axes", axis, rank)};
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

}  // namespace bakeoff::onnx
