#pragma once

// Elements of arrays as numpy and IDX files have them, and what they become in a safetensors file.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"
#include "tensor/safetensors.h"

namespace bakeoff {

struct Element {
  char kind = 'u';  // as numpy: 'b' bool, 'i' and 'u' integers, 'f' floating point
  size_t size = 1;  // in bytes: 1, 2, 4 or 8
  bool big_endian = false;
  bool operator==(const Element&) const = default;
};

// "float64", "uint8", "bool".
std::string name(const Element& element);

// The type in which an input of type `wanted` stores such elements: it holds all of their values but 64-bit
// integers beyond 2^53 (float) or 2^63 (integer). Error: floating point for an input of integers.
Result<tensor::DType> stored_as(const Element& element, ir::DType wanted);

// Appends the elements in `bytes` to `out` as `to`, which stored_as() gave. Returns the index of the first
// element that `to` cannot hold, or nothing.
std::optional<size_t> convert(const Element& element, std::string_view bytes, tensor::DType to,
                              std::string& out);

// An array before its elements are read.
struct ArrayHeader {
  Element element = {};
  tensor::Shape shape = {};
  bool column_major = false;  // the first axis fastest (numpy's fortran_order)
};

// The shape that an array of shape `has` takes as an input of type `wanted`: equal but for the number of
// rows; axes of size 1 may be missing or added. An error says what differs.
Result<tensor::Shape> fit_shape(const tensor::Shape& has, const ir::Type& wanted);

}  // namespace bakeoff
