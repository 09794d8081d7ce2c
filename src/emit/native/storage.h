#pragma once

// Numbers as files have them and as programs hold them: types, shapes, the order of axes. files.h reads and writes them.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "emit/native/heavy.h"

// A tensor as a safetensors file has it. Of an input only those bytes are there that a step has needed:
// reading 60,000 pictures took 0.3 s before the first one.
struct Tensor {
  std::string dtype;  // "F32"
  std::vector<int64_t> shape;
  std::vector<char> bytes;
  std::shared_ptr<std::ifstream> file = nullptr;  // that has the others
  uint64_t begin = 0, size = 0;                   // where the tensor begins there, and its bytes
  std::string path = {};                          // of that file
  // Reads on up to byte `end`.
  void read(uint64_t end) {
    const uint64_t there = bytes.size();
    if (file == nullptr || end <= there) return;
    bytes.reserve(size);  // so that nothing moves
    bytes.resize(end);
    file->seekg(static_cast<std::streamoff>(begin + there));
    file->read(bytes.data() + there, static_cast<std::streamsize>(end - there));
    if (!*file)
      throw std::runtime_error("'" + path +
                               "' became shorter while it was read\n  start again with the whole file");
  }
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

// Whether numbers stay where they are: axes that have more than one place keep their order.
inline bool keeps_order(const std::vector<int64_t>& shape, const std::vector<int64_t>& perm) {
  std::vector<int64_t> moved;
  for (const int64_t axis : perm) {
    if (shape[static_cast<size_t>(axis)] > 1) moved.push_back(axis);
  }
  return std::is_sorted(moved.begin(), moved.end());
}

// The array of `shape` with its axes in the order of `perm`; back: from that order to `shape`. A perm of no
// axes: as it is.
template <typename T>
std::vector<T> turned(std::vector<T> values, const std::vector<int64_t>& shape,
                      const std::vector<int64_t>& perm, bool back = false) {
  if (keeps_order(shape, perm)) return values;
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

// The rows of an input as a step reads them. A file's numbers are used where they lie if they have the step's
// type and order of axes. Else a row is converted when a batch first needs it: in float32, divided, its axes
// turned.
template <typename T>
struct Feed {
  Tensor given;
  float divisor = 1;
  int64_t width = 1, made = 0;  // numbers of a row; rows that are converted
  std::unique_ptr<T[]> values;
  std::vector<int64_t> places;  // in the file's row, of each number of a turned one
  void take(Tensor tensor, double by = 1, const std::vector<int64_t>& perm = {}) {
    given = std::move(tensor);
    divisor = static_cast<float>(by);
    width = 1, made = 0;
    values.reset();
    for (size_t axis = 1; axis < given.shape.size(); ++axis) width *= given.shape[axis];
    places.clear();
    if (keeps_order(given.shape, perm)) return;
    std::vector<int64_t> row = given.shape;
    row[0] = 1;
    places.resize(static_cast<size_t>(width));
    std::iota(places.begin(), places.end(), 0);
    places = turned(places, row, perm);
  }
  const T* rows(int64_t first, int64_t count) {
    const bool same =
        places.empty() && divisor == 1 && sizeof(T) == 4 && given.dtype == (T(0.5) == 0 ? "I32" : "F32");
    if (!same && !values) values.reset(new T[static_cast<size_t>(given.shape[0] * width)]);
    if (!same && first + count > made) make(first + count);
    if (!same) return values.get() + first * width;
    given.read(static_cast<uint64_t>((first + count) * width) * sizeof(T));
    return reinterpret_cast<const T*>(given.bytes.data()) + first * width;
  }
  void make(int64_t end) {
    if (given.dtype == "U8")
      convert<uint8_t>(end);
    else if (given.dtype == "I32")
      convert<int32_t>(end);
    else if (given.dtype == "I64")
      convert<int64_t>(end);
    else if (given.dtype == "F32")
      convert<float>(end);
    else if (given.dtype == "F64")
      convert<double>(end);
    else
      throw std::runtime_error("the dtype " + given.dtype + " is not known here");
    made = end;
  }
  template <typename From>
  void convert(int64_t end) {
    given.read(static_cast<uint64_t>(end * width) * sizeof(From));
    const auto number = [](const char* from) {
      From value;
      std::memcpy(&value, from, sizeof(From));
      return value;
    };
    for (int64_t row = made; row < end; ++row) {
      const char* const from = given.bytes.data() + row * width * static_cast<int64_t>(sizeof(From));
      T* const to = values.get() + row * width;
      for (int64_t i = 0; i < width; ++i) {
        const int64_t place = places.empty() ? i : places[static_cast<size_t>(i)];
        const From value = number(from + place * static_cast<int64_t>(sizeof(From)));
        if constexpr (T(0.5) == 0)
          to[i] = static_cast<T>(value);
        else
          to[i] = static_cast<T>(static_cast<float>(value) / divisor);
      }
    }
  }
};

// A parameter as files have it, and how it is held: its numbers seen as `view` with axes in the order of `perm`, from
// place `at` on.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape, view, perm;
  int64_t at = 0, count = 0;
  bool trained = true;
};

// One as a constant: a list of vectors takes g++ a second for each 100 parameters.
struct ParameterRow {
  const char* name;
  std::initializer_list<int64_t> shape, view, perm;
  int64_t at;
  bool trained;
};

template <size_t N>
std::vector<Parameter> parameters_of(const ParameterRow (&rows)[N]) {
  std::vector<Parameter> all;
  for (const auto& [name, shape, view, perm, at, trained] : rows) {
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    all.push_back({name, shape, view, perm, at, count, trained});
  }
  return all;
}

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
