#pragma once

// Numbers as files have them and as programs hold them: types, shapes, the order of axes. files.h reads and writes them.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "emit/native/heavy.h"

// A tensor as a safetensors file has it.
struct Tensor {
  std::string dtype;  // "F32"
  std::vector<int64_t> shape;
  std::vector<char> bytes;
};

// The numbers of one dtype, as another type.
template <typename From, typename To>
std::vector<To> converted(const std::vector<char>& bytes) {
  std::vector<To> values(bytes.size() / sizeof(From));
  for (size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    values[i] = static_cast<To>(value);
  }
  return values;
}

// The numbers of a tensor.
template <typename To>
std::vector<To> numbers(const std::map<std::string, Tensor>& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw std::runtime_error("the file has no '" + name + "'");
  const Tensor& tensor = found->second;
  if (tensor.dtype == "U8") return converted<uint8_t, To>(tensor.bytes);
  if (tensor.dtype == "I32") return converted<int32_t, To>(tensor.bytes);
  if (tensor.dtype == "I64") return converted<int64_t, To>(tensor.bytes);
  if (tensor.dtype == "F32") return converted<float, To>(tensor.bytes);
  if (tensor.dtype == "F64") return converted<double, To>(tensor.bytes);
  throw std::runtime_error("'" + name + "' has the dtype " + tensor.dtype + ", which is not known here");
}

// Numbers as a tensor in their own precision.
template <typename T>
Tensor tensor_of(const std::vector<T>& values, const std::vector<int64_t>& shape) {
  const std::string dtype = T(0.5) == 0 ? "I32" : sizeof(T) == 8 ? "F64" : "F32";
  Tensor tensor{dtype, shape, std::vector<char>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

// The array of `shape` with its axes in the order of `perm`; back: from that order to `shape`. A perm of no axes: as it is.
template <typename T>
std::vector<T> turned(std::vector<T> values, const std::vector<int64_t>& shape,
                      const std::vector<int64_t>& perm, bool back = false) {
  std::vector<int64_t> moved;  // axes that have more than one place
  for (const int64_t axis : perm) {
    if (shape[static_cast<size_t>(axis)] > 1) moved.push_back(axis);
  }
  if (std::is_sorted(moved.begin(), moved.end())) return values;
  std::vector<int64_t> strides(shape.size(), 1), index(perm.size(), 0);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  std::vector<T> result(values);
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t from = 0;
    for (size_t axis = 0; axis < perm.size(); ++axis)
      from += index[axis] * strides[static_cast<size_t>(perm[axis])];
    (back ? result[static_cast<size_t>(from)] : result[i]) = values[back ? i : static_cast<size_t>(from)];
    for (size_t axis = perm.size(); axis-- > 0;) {
      if (++index[axis] < shape[static_cast<size_t>(perm[axis])]) break;
      index[axis] = 0;
    }
  }
  return result;
}

// A parameter as files have it, and how it is held: its numbers seen as `view` with axes in the order of `perm`, from
// place `at` on.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape, view, perm;
  int64_t at = 0, count = 0;
  bool trained = true;
};

// The numbers of a parameter, its gradient or the like, as files have them.
inline std::vector<Real> canonical(const Parameter& p, const Real* values) {
  return turned(std::vector<Real>(values + p.at, values + p.at + p.count), p.view, p.perm, true);
}

// Whether Ctrl-C was pressed: the loop ends after its step.
inline volatile std::sig_atomic_t& interrupted() {
  static volatile std::sig_atomic_t seen = 0;
  return seen;
}

inline void interrupt(int) { interrupted() = 1; }
