#pragma once

// Dense row-major arrays as plain values, in the canonical layouts of ir/workload.h. The referee computes in
// double; integers (labels, token ids) keep a type of their own.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace bakeoff::tensor {

using Shape = std::vector<int64_t>;  // sizes of the axes; {} is a scalar of one element

struct Tensor {
  Shape shape;
  std::vector<double> data;  // elements(shape) numbers, the last axis fastest
  bool operator==(const Tensor&) const = default;
};

struct IntTensor {
  Shape shape;
  std::vector<int64_t> data;
  bool operator==(const IntTensor&) const = default;
};

using AnyTensor = std::variant<Tensor, IntTensor>;

// Number of elements: the product of the sizes.
int64_t elements(const Shape& shape);
// "[256,1,28,28]"
std::string to_text(const Shape& shape);

Tensor zeros(Shape shape);
Tensor full(Shape shape, double value);
const Shape& shape_of(const AnyTensor& any);

// The Euclidean norm: sqrt(sum of squares).
double norm(const Tensor& tensor);
// norm(a - b) / norm(b), the measure of parity; the plain norm(a - b) where b is zero, infinity where the
// shapes differ, NaN where an element is.
double relative_distance(const Tensor& a, const Tensor& b);

}  // namespace bakeoff::tensor
