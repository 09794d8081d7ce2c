#pragma once

// Arrays that an ONNX file states, and what is computed from them at import.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace bakeoff::onnx {

using tensor::Shape;
using Ints = std::vector<int64_t>;

enum class Kind { kFloat, kInt, kBool };

// Row-major. Floats of any width in `reals`, integers and booleans in `ints`.
struct Array {
  Kind kind = Kind::kFloat;
  Shape shape = {};
  std::vector<double> reals = {};
  Ints ints = {};
  // Which of the file's numbers these are, counted over its tensors (walk.cc): number i is first + i, or origins[i] where
  // they are not empty; -1: none. A sum has as many of them for each summand, one summand after the other.
  int64_t first = -1;
  Ints origins = {};

  bool has_origins() const { return first >= 0 || !origins.empty(); }
  int64_t origin(size_t i) const {
    return origins.empty() ? (first < 0 ? -1 : first + static_cast<int64_t>(i)) : origins[i];
  }
  size_t summands() const { return origins.empty() ? 1 : origins.size() / size(); }
  bool is_float() const { return kind == Kind::kFloat; }
  size_t size() const { return is_float() ? reals.size() : ints.size(); }
  double real(size_t i) const { return is_float() ? reals[i] : static_cast<double>(ints[i]); }
  bool operator==(const Array&) const = default;
};
using ArrayPtr = std::shared_ptr<const Array>;

ArrayPtr of_ints(Ints numbers);                    // rank 1
ArrayPtr of_real(double number);                   // rank 0
ArrayPtr shaped(const Array& array, Shape shape);  // the same numbers
ArrayPtr filled(Kind kind, Shape shape, double value);
ArrayPtr without_origins(const ArrayPtr& array);

// Elements of `array` by their flat indices, in a new shape.
ArrayPtr picked(const Array& array, Shape shape, const std::vector<size_t>& at);
ArrayPtr transposed(const Array& array, const Ints& perm);
ArrayPtr sliced(const Array& array, size_t axis, int64_t begin, int64_t count, int64_t step = 1);
ArrayPtr joined(const std::vector<ArrayPtr>& arrays, size_t axis);  // one kind; sizes must fit
// Elements along one axis by their numbers, which lie within it.
ArrayPtr taken(const Array& array, size_t axis, const Array& ids);

// As another kind; reals are cut towards zero. An error where a number does not fit.
Result<ArrayPtr> converted(const ArrayPtr& array, Kind to);

// numpy's rule; an error where sizes do not fit or the result would be too large.
Result<Shape> broadcast(const Shape& a, const Shape& b);
Result<ArrayPtr> expanded(const ArrayPtr& array, const Shape& shape);
// Number of elements; an error for negative sizes, for more than `most`, and for too many axes.
inline constexpr int64_t kMostElements = int64_t{1} << 31;
inline constexpr size_t kMostAxes = 64;
Result<int64_t> count(const Shape& shape, int64_t most = kMostElements);

// The axis counted from 0, where negative ones count from the end.
Result<size_t> axis_of(int64_t axis, size_t rank);

}  // namespace bakeoff::onnx
