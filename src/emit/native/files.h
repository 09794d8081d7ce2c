#pragma once

// Files and arguments of programs. Tensors are read from a safetensors file, from an .npy file or from a folder of them,
// and written as the name of the file asks. Whatever a user gives may be wrong: every function here says which file or
// argument, which name in it, and what to do (refuse); the program then ends with 2, before it computes anything.

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "emit/native/storage.h"

// Ends what goes on: what is wrong, and on a line of its own what to do about it.
[[noreturn]] inline void refuse(const std::string& what, const std::string& remedy) {
  throw std::runtime_error(what + "\n  " + remedy);
}

// "[2, 3]"; -1 stands for the rows.
inline std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape)
    text += (text.empty() ? "" : ", ") + (size < 0 ? std::string("rows") : std::to_string(size));
  return "[" + text + "]";
}

// The bytes that a tensor of this type and shape has; -1: no such type; -2: more than any file.
inline int64_t bytes_of(const std::string& dtype, const std::vector<int64_t>& shape) {
  const std::map<std::string, int64_t> widths = {{"U8", 1},  {"F16", 2}, {"BF16", 2}, {"I32", 4},
                                                 {"F32", 4}, {"I64", 8}, {"F64", 8}};
  const auto width = widths.find(dtype);
  if (width == widths.end()) return -1;
  int64_t bytes = width->second;
  for (const int64_t size : shape) {
    if (size > 0 && bytes > (int64_t{1} << 50) / size) return -2;
    bytes *= size;
  }
  return bytes;
}

// The file, opened at its beginning, and its size in bytes.
inline std::shared_ptr<std::ifstream> open_file(const std::string& path, uint64_t& size) {
  const auto file = std::make_shared<std::ifstream>(path, std::ios::binary | std::ios::ate);
  if (!*file || std::filesystem::is_directory(path))
    refuse("cannot read '" + path + "': " + std::strerror(*file ? EISDIR : errno),
           "give a safetensors file, an .npy file, or a folder with a file NAME.npy for each tensor");
  size = static_cast<uint64_t>(file->tellg());
  file->seekg(0);
  return file;
}

// What stands between `open` and `close` in the header of a file.
inline std::string field(const std::string& path, const std::string& header, const std::string& open,
                         char close) {
  const size_t begin = header.find(open) + open.size(), end = header.find(close, begin);
  if (begin < open.size() || end == std::string::npos)
    refuse("'" + path + "' has no " + open + " in its header", "write the file again");
  return header.substr(begin, end - begin);
}

// "2, 3" as numbers.
inline std::vector<int64_t> sizes_in(const std::string& path, const std::string& text) {
  std::vector<int64_t> sizes;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    part.erase(0, part.find_first_not_of(' '));
    if (part.empty()) continue;
    int64_t size = -1;
    std::from_chars(part.data(), part.data() + part.size(), size);
    if (size < 0) refuse("'" + path + "' has '" + text + "' for a list of sizes", "write the file again");
    sizes.push_back(size);
  }
  return sizes;
}

// A safetensors file: 8 bytes with the length of a JSON header, the header
// {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}, then the tensors' bytes. `later`: Tensor::read
// reads them.
inline std::map<std::string, Tensor> load_safetensors(const std::string& path, bool later = false) {
  const std::string again = "write the file again, with the safetensors package";
  uint64_t size = 0, length = 0;
  const auto file = open_file(path, size);
  file->read(reinterpret_cast<char*>(&length), sizeof length);
  if (!*file || length > 100'000'000) refuse("'" + path + "' is no safetensors file", again);
  if (length + 8 > size) refuse("'" + path + "' ends within its header", again);
  std::string header(length, ' ');
  file->read(header.data(), static_cast<std::streamsize>(length));
  if (!*file) refuse("'" + path + "' cannot be read", again);
  std::map<std::string, Tensor> tensors;
  for (size_t at = 1; at < header.size() && header[at] == '"';) {
    const size_t colon = header.find("\":{", at), end = header.find('}', colon);
    if (end == std::string::npos) refuse("the header of '" + path + "' is damaged", again);
    const std::string name = header.substr(at + 1, colon - at - 1), entry = header.substr(colon, end - colon);
    at = end + 2;  // behind "},"
    if (name == "__metadata__") continue;
    Tensor& tensor = tensors[name];
    tensor.dtype = field(path, entry, "\"dtype\":\"", '"');
    tensor.shape = sizes_in(path, field(path, entry, "\"shape\":[", ']'));
    const std::vector<int64_t> range = sizes_in(path, field(path, entry, "\"data_offsets\":[", ']'));
    if (range.size() != 2 || range[1] < range[0])
      refuse("'" + name + "' of '" + path + "' has no place in the file", again);
    const int64_t bytes = range[1] - range[0], due = bytes_of(tensor.dtype, tensor.shape);
    if (static_cast<uint64_t>(range[1]) > size - 8 - length)
      refuse("'" + path + "' ends within '" + name + "'", again);
    if (due != -1 && bytes != due)
      refuse("'" + name + "' of '" + path + "' has " + std::to_string(bytes) + " bytes, its shape " +
                 shape_text(tensor.shape) + " another number",
             again);
    tensor.file = file, tensor.path = path;
    tensor.begin = 8 + length + static_cast<uint64_t>(range[0]), tensor.size = static_cast<uint64_t>(bytes);
    if (!later) tensor.read(tensor.size);
  }
  return tensors;
}

// An .npy file: "\x93NUMPY", a version, the length of a header, the header, which is a Python dict, then the numbers.
inline Tensor load_npy(const std::string& path, bool later = false) {
  const std::string again = "save it with numpy: np.save(file, np.ascontiguousarray(array))";
  uint64_t size = 0;
  const auto file = open_file(path, size);
  unsigned char head[12] = {};
  file->read(reinterpret_cast<char*>(head), sizeof head);
  if (!*file || std::memcmp(head, "\x93NUMPY", 6) != 0) refuse("'" + path + "' is no .npy file", again);
  const uint64_t begin = head[6] == 1 ? 10 : 12;
  const uint64_t length = head[8] + 256u * head[9] + (begin == 12 ? 65536u * head[10] : 0u);
  if (begin + length > size) refuse("'" + path + "' ends within its header", again);
  std::string header(length, ' ');
  file->seekg(static_cast<std::streamoff>(begin));
  file->read(header.data(), static_cast<std::streamsize>(length));
  const std::map<std::string, std::string> types = {{"<f4", "F32"}, {"<f8", "F64"}, {"|u1", "U8"},
                                                    {"|b1", "U8"},  {"<i4", "I32"}, {"<i8", "I64"}};
  const auto type = types.find(field(path, header, "'descr': '", '\''));
  if (type == types.end())
    refuse("'" + path + "' has numbers of an unknown type: " + header.substr(0, header.find(',')),
           "give float32, float64, int32, int64, uint8 or bool: array.astype(np.float32)");
  Tensor tensor{
      type->second, sizes_in(path, field(path, header, "'shape': (", ')')), {}, file, begin + length};
  if (header.find("'fortran_order': True") != std::string::npos && tensor.shape.size() > 1)
    refuse("'" + path + "' is stored column by column", again);
  const auto bytes = static_cast<uint64_t>(bytes_of(tensor.dtype, tensor.shape));
  if (bytes != size - begin - length)
    refuse("'" + path + "' has " + std::to_string(size - begin - length) + " bytes of numbers, its shape " +
               shape_text(tensor.shape) + " another number",
           again);
  tensor.size = bytes, tensor.path = path;
  if (!later) tensor.read(bytes);
  return tensor;
}

// The tensors `names`: of a safetensors file; of an .npy file, which is the only one; of a folder with
// NAME.npy for each.
inline std::map<std::string, Tensor> load_tensors(const std::string& path,
                                                  const std::vector<std::string>& names, bool later = false) {
  std::map<std::string, Tensor> tensors;
  if (path.ends_with(".npy") && names.size() != 1)
    refuse("'" + path + "' is one array, where " + std::to_string(names.size()) + " are needed",
           "give a folder with " + names.at(0) + ".npy and the like, or a safetensors file");
  if (path.ends_with(".npy"))
    tensors[names[0]] = load_npy(path, later);
  else if (!std::filesystem::is_directory(path))
    tensors = load_safetensors(path, later);
  else
    for (const std::string& name : names) tensors[name] = load_npy(path + "/" + name + ".npy", later);
  for (const std::string& name : names) {
    std::string there;
    for (const auto& [other, tensor] : tensors) there += (there.empty() ? "" : ", ") + other;
    if (!tensors.contains(name))
      refuse("'" + path + "' has no '" + name + "'", "give a file that has it; this one has: " + there);
  }
  return tensors;
}

// Writes a file that appears under its name when it is complete.
inline void save_bytes(const std::string& path, const std::string& head,
                       const std::vector<const Tensor*>& all) {
  std::ofstream file(path + ".part", std::ios::binary);
  file.write(head.data(), static_cast<std::streamsize>(head.size()));
  for (const Tensor* tensor : all)
    file.write(tensor->bytes.data(), static_cast<std::streamsize>(tensor->bytes.size()));
  file.close();
  if (!file || std::rename((path + ".part").c_str(), path.c_str()) != 0)
    refuse("cannot write '" + path + "': " + std::strerror(errno), "choose another file for --out");
}

inline void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  std::string header = "{";
  std::vector<const Tensor*> all;
  size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const int64_t size : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(size);
    header += (header.size() > 1 ? ",\"" : "\"") + name + "\":{\"dtype\":\"" + tensor.dtype +
              "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(at) + "," +
              std::to_string(at + tensor.bytes.size()) + "]}";
    at += tensor.bytes.size();
    all.push_back(&tensor);
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  save_bytes(path, std::string(reinterpret_cast<const char*>(&length), sizeof length) + header, all);
}

inline void save_npy(const std::string& path, const Tensor& tensor) {
  std::string shape;
  for (const int64_t size : tensor.shape) shape += std::to_string(size) + ", ";
  const std::string descr = tensor.dtype == "I32" ? "<i4" : tensor.dtype == "F64" ? "<f8" : "<f4";
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((header.size() + 10) / 64 * 64 + 53, ' ');
  header += '\n';
  const std::string length = {static_cast<char>(header.size() % 256), static_cast<char>(header.size() / 256)};
  save_bytes(path, std::string("\x93NUMPY\x01\0", 8) + length + header, {&tensor});
}

// One tensor as an .npy file where the file is called so, else a safetensors file.
inline void save_tensors(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  if (!path.ends_with(".npy")) return save_safetensors(path, tensors);
  if (tensors.size() != 1)
    refuse("'" + path + "' can hold one array, and there are " + std::to_string(tensors.size()),
           "name a file that ends in .safetensors");
  save_npy(path, tensors.begin()->second);
}

// What an integer may be: in [begin, end), or `besides`.
struct Range {
  int64_t begin = 0, end = 0, besides = 0;
};

// An input of the model: its name, the sizes of one row of it, and what its integers may be: all the same, or
// one by one.
struct Input {
  std::string name;
  std::vector<int64_t> row;
  std::vector<Range> ranges = {};
};

// Refuses integers that would be read as places outside of a table, or as classes that there are not.
inline void check_ranges(const std::string& from, const Input& input, const std::vector<int64_t>& values) {
  int64_t width = 1;
  for (const int64_t size : input.row) width *= size;
  for (size_t i = 0; i < values.size() && !input.ranges.empty(); ++i) {
    const Range& range = input.ranges[i % input.ranges.size()];
    if ((values[i] >= range.begin && values[i] < range.end) || values[i] == range.besides) continue;
    refuse("'" + input.name + "' of '" + from + "' has " + std::to_string(values[i]) + " in row " +
               std::to_string(static_cast<int64_t>(i) / width) + ", the model reads " +
               std::to_string(range.begin) + ".." + std::to_string(range.end - 1),
           "give numbers within these bounds");
  }
}

// Refuses inputs of other shapes than the model reads, with different numbers of rows, or with integers out of range.
inline void check_inputs(const std::string& from, std::map<std::string, Tensor>& tensors,
                         const std::vector<Input>& inputs) {
  for (const Input& input : inputs) {
    std::vector<int64_t> shape = tensors.at(input.name).shape, wanted = input.row;
    wanted.insert(wanted.begin(), -1);
    const int64_t rows = shape.empty() ? 0 : shape[0], first = tensors.at(inputs[0].name).shape[0];
    if (!shape.empty()) shape[0] = -1;
    if (shape != wanted || rows == 0)
      refuse("'" + input.name + "' of '" + from + "' has the shape " +
                 shape_text(tensors.at(input.name).shape) + ", the model reads " + shape_text(wanted),
             "give each row the sizes that the model reads, and at least one row");
    if (rows != first)
      refuse("'" + input.name + "' of '" + from + "' has " + std::to_string(rows) + " rows, '" +
                 inputs[0].name + "' has " + std::to_string(first),
             "give every input the same number of rows");
    if (input.ranges.empty()) continue;
    tensors.at(input.name).read(tensors.at(input.name).size);
    check_ranges(from, input, numbers<int64_t>(tensors, input.name));
  }
}

inline std::map<std::string, Tensor> load_inputs(const std::string& path, const std::vector<Input>& inputs) {
  std::vector<std::string> names;
  for (const Input& input : inputs) names.push_back(input.name);
  return load_tensors(path, names, /*later=*/true);
}

inline void load_parameters(const std::string& path, const std::vector<Parameter>& table, Real* parameters) {
  std::vector<std::string> names;
  for (const Parameter& p : table) names.push_back(p.name);
  const auto tensors = load_tensors(path, names);
  for (const Parameter& p : table) {
    const Tensor& tensor = tensors.at(p.name);
    if (tensor.shape != p.shape)
      refuse("'" + p.name + "' of '" + path + "' has the shape " + shape_text(tensor.shape) +
                 ", the model's has " + shape_text(p.shape),
             "give weights of this model");
    const std::vector<Real> values = turned(numbers<Real>(tensors, p.name), p.view, p.perm);
    std::copy(values.begin(), values.end(), parameters + p.at);
  }
}

inline void save_parameters(const std::string& path, const std::vector<Parameter>& table,
                            const Real* parameters) {
  std::map<std::string, Tensor> tensors;
  for (const Parameter& p : table) tensors[p.name] = tensor_of(canonical(p, parameters), p.shape);
  save_safetensors(path, tensors);
}

// The numbers from `values` on as a tensor of this shape.
template <typename T>
Tensor tensor_at(const T* values, const std::vector<int64_t>& shape) {
  Tensor tensor = tensor_of(std::vector<T>(), shape);
  const auto* const bytes = reinterpret_cast<const char*>(values);
  tensor.bytes.assign(bytes, bytes + bytes_of(tensor.dtype, shape));
  return tensor;
}

// Adds the rows of `part` below those of `all`.
inline void append_rows(std::map<std::string, Tensor>& all, const std::map<std::string, Tensor>& part) {
  for (const auto& [name, tensor] : part) {
    Tensor& whole = all[name];
    const int64_t above = whole.shape.empty() ? 0 : whole.shape[0];
    whole.dtype = tensor.dtype;
    whole.shape = tensor.shape;
    whole.shape.at(0) += above;
    whole.bytes.insert(whole.bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
}

// The mean of a tensor's numbers.
inline double mean_of(const Tensor& tensor) {
  double sum = 0;
  const std::vector<double> values = numbers<double>({{"", tensor}}, "");
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The values of options, those of `known` where an option is not given.
inline std::map<std::string, std::string> options(int argc, char** argv,
                                                  std::map<std::string, std::string> known) {
  std::string all;
  for (const auto& [name, value] : known) all += " " + name;
  for (int i = 1; i < argc; i += 2) {
    if (!known.contains(argv[i])) refuse(std::string("there is no option ") + argv[i], "options:" + all);
    if (std::string(argv[i]) == "--tuned") {
      known[argv[i--]] = "yes";
      continue;
    }
    if (i + 1 == argc) refuse(std::string(argv[i]) + " needs a value", "write it behind the option");
    known[argv[i]] = argv[i + 1];
  }
  return known;
}

// The value of an option that is a number from 0 on.
inline int64_t whole_number(const std::map<std::string, std::string>& given, const std::string& name) {
  const std::string& text = given.at(name);
  int64_t value = -1;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
  if (value < 0 || end != text.data() + text.size())
    refuse(name + " is '" + text + "'", "give a whole number from 0 on");
  return value;
}
