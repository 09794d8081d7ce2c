#pragma once

// Steps through an array while two other positions follow by strides: the loop behind broadcasting,
// transposing, padding and joining.

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace bakeoff::referee {

using Strides = std::vector<int64_t>;

// The strides of a row-major array, in elements.
inline Strides strides_of(const tensor::Shape& shape) {
  Strides strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// Strides of an operand over the axes of the output: an axis of size 1 stays where it is, and so does a scalar.
inline Strides broadcast_strides(const tensor::Shape& operand, const tensor::Shape& output) {
  if (operand.empty()) return Strides(output.size(), 0);
  Strides strides = strides_of(operand);
  for (size_t axis = 0; axis < output.size(); ++axis) {
    if (operand[axis] == 1) strides[axis] = 0;
  }
  return strides;
}

// Calls visit(i, a, b) for every element of `shape` in row-major order: i counts up, a and b are the sums of
// index times stride.
template <typename Visit>
void walk(const tensor::Shape& shape, const Strides& a_strides, const Strides& b_strides,
          const Visit& visit) {
  const int64_t count = tensor::elements(shape);
  std::vector<int64_t> index(shape.size(), 0);
  int64_t a = 0, b = 0;
  for (int64_t i = 0; i < count; ++i) {
    visit(i, a, b);
    for (size_t axis = shape.size(); axis-- > 0;) {
      a += a_strides[axis];
      b += b_strides[axis];
      if (++index[axis] < shape[axis]) break;
      a -= shape[axis] * a_strides[axis];
      b -= shape[axis] * b_strides[axis];
      index[axis] = 0;
    }
  }
}

// Calls visit(first, step, count) for every line of an array along one axis: its first element, the distance of
// the next one and how many there are.
template <typename Visit>
void each_line(const tensor::Shape& shape, int64_t axis, const Visit& visit) {
  const int64_t step = strides_of(shape)[static_cast<size_t>(axis)], count = shape[static_cast<size_t>(axis)];
  const int64_t lines = tensor::elements(shape) / count;
  for (int64_t line = 0; line < lines; ++line) visit(line / step * step * count + line % step, step, count);
}

}  // namespace bakeoff::referee
