#pragma once

// Files, arguments and the order of numbers in programs: all that is not arithmetic.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
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

// What stands between `open` and `close` in an entry of the header below.
inline std::string field(const std::string& entry, const std::string& open, char close) {
  const size_t begin = entry.find(open) + open.size(), end = entry.find(close, begin);
  if (begin < open.size() || end == std::string::npos)
    throw std::runtime_error("no " + open + " in " + entry);
  return entry.substr(begin, end - begin);
}

// A safetensors file: 8 bytes with the length of a JSON header, the header
// {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}, then the tensors' bytes.
inline std::map<std::string, Tensor> load_safetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || length > 100'000'000) throw std::runtime_error(path + " is not there, or no safetensors file");
  std::string header(length, ' ');
  file.read(header.data(), static_cast<std::streamsize>(length));
  std::map<std::string, Tensor> tensors;
  for (size_t at = 1; at < header.size() && header[at] == '"';) {
    const size_t colon = header.find("\":{", at), end = header.find('}', colon);
    if (end == std::string::npos) throw std::runtime_error("the header of " + path + " is damaged");
    const std::string name = header.substr(at + 1, colon - at - 1), entry = header.substr(colon, end - colon);
    at = end + 2;  // behind "},"
    if (name == "__metadata__") continue;
    Tensor& tensor = tensors[name];
    tensor.dtype = field(entry, "\"dtype\":\"", '"');
    std::stringstream sizes(field(entry, "\"shape\":[", ']'));
    for (std::string size; std::getline(sizes, size, ',');) tensor.shape.push_back(std::stoll(size));
    std::stringstream range(field(entry, "\"data_offsets\":[", ']'));
    int64_t begin = 0, last = 0;
    char comma = 0;
    range >> begin >> comma >> last;
    if (begin < 0 || last < begin) throw std::runtime_error("the header of " + path + " is damaged");
    tensor.bytes.resize(static_cast<size_t>(last - begin));
    file.seekg(static_cast<std::streamoff>(8 + length) + begin);
    file.read(tensor.bytes.data(), last - begin);
  }
  if (!file) throw std::runtime_error(path + " ends before its data");
  return tensors;
}

// The file appears under its name when it is complete.
inline void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  std::string header = "{";
  size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const int64_t size : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(size);
    header += (header.size() > 1 ? ",\"" : "\"") + name + "\":{\"dtype\":\"" + tensor.dtype +
              "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(at) + "," +
              std::to_string(at + tensor.bytes.size()) + "]}";
    at += tensor.bytes.size();
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  std::ofstream file(path + ".part", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file.write(header.data(), static_cast<std::streamsize>(length));
  for (const auto& [name, tensor] : tensors)
    file.write(tensor.bytes.data(), static_cast<std::streamsize>(tensor.bytes.size()));
  file.close();
  if (!file || std::rename((path + ".part").c_str(), path.c_str()) != 0)
    throw std::runtime_error("cannot write " + path);
}

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
std::vector<T> turned(const std::vector<T>& values, const std::vector<int64_t>& shape,
                      const std::vector<int64_t>& perm, bool back = false) {
  std::vector<int64_t> strides(shape.size(), 1), index(perm.size(), 0);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  std::vector<T> result(values);
  for (size_t i = 0; !perm.empty() && i < values.size(); ++i) {
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

inline void load_parameters(const std::string& path, const std::vector<Parameter>& table, Real* parameters) {
  const auto tensors = load_safetensors(path);
  for (const Parameter& p : table) {
    const std::vector<Real> values = turned(numbers<Real>(tensors, p.name), p.view, p.perm);
    if (static_cast<int64_t>(values.size()) != p.count)
      throw std::runtime_error(p.name + " has another size");
    std::copy(values.begin(), values.end(), parameters + p.at);
  }
}

// The numbers of a parameter, its gradient or the like, as files have them.
inline std::vector<Real> canonical(const Parameter& p, const Real* values) {
  return turned(std::vector<Real>(values + p.at, values + p.at + p.count), p.view, p.perm, true);
}

inline void save_parameters(const std::string& path, const std::vector<Parameter>& table,
                            const Real* parameters) {
  std::map<std::string, Tensor> tensors;
  for (const Parameter& p : table) tensors[p.name] = tensor_of(canonical(p, parameters), p.shape);
  save_safetensors(path, tensors);
}

// An input with real numbers, of which a file has bytes or the like: divided, in float32.
inline std::vector<Real> scaled(const std::map<std::string, Tensor>& tensors, const std::string& name,
                                float divisor) {
  std::vector<Real> values;
  for (const float value : numbers<float>(tensors, name))
    values.push_back(static_cast<Real>(value / divisor));
  return values;
}

// The value behind an option; `otherwise` where it is not given.
inline std::string option(int argc, char** argv, const std::string& name, const std::string& otherwise) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) throw std::runtime_error(std::string(argv[i]) + " needs a value");
    if (name == argv[i]) return argv[i + 1];
  }
  return otherwise;
}

// Whether Ctrl-C was pressed: the loop ends after its step.
inline volatile std::sig_atomic_t& interrupted() {
  static volatile std::sig_atomic_t seen = 0;
  return seen;
}

inline void interrupt(int) { interrupted() = 1; }
