// Trains mlp_small: one program, for which nothing but a C++20 compiler is needed.
//
//   g++ -std=c++20 -O3 -march=native train_native.cc -o train_native
//   ./train_native --data data.safetensors --weights weights.safetensors --steps 100

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#pragma GCC diagnostic ignored "-Wunknown-pragmas"  // ivdep is g++'s own

using Real = float;  // everything is computed in it

constexpr int64_t kBatch = 1000;
constexpr double kLearningRate = 0.001;

// The sum of a[i] b[i], in 16 sums side by side.
inline Real dot(int64_t count, const Real* a, const Real* b) {
  Real sums[16] = {}, sum = 0;
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int64_t j = 0; j < 16; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (int64_t j = 0; j < 16; ++j) sum += sums[j];
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// y += x w, for m rows.
template <int64_t I, int64_t O>
void linear(int64_t m, const Real* x, const Real* w, Real* y) {
  for (int64_t first = 0; first < m; first += 8) {
    const int64_t end = std::min(first + 8, m);
    for (int64_t i = 0; i < I; ++i) {
      for (int64_t row = first; row < end; ++row) {
        const Real value = x[row * I + i];
        for (int64_t o = 0; o < O; ++o) y[row * O + o] += value * w[i * O + o];
      }
    }
  }
}

// Of x, from the gradient g of y.
template <int64_t I, int64_t O>
void linear_dx(int64_t m, const Real* g, const Real* w, Real* dx) {
  for (int64_t first = 0; first < m; first += 8) {
    const int64_t end = std::min(first + 8, m);
    for (int64_t i = 0; i < I; ++i) {
      for (int64_t row = first; row < end; ++row) dx[row * I + i] += dot(O, g + row * O, w + i * O);
    }
  }
}

// Of w: summed over 64 rows apart, for the sake of its digits.
template <int64_t I, int64_t O>
void linear_dw(int64_t m, const Real* x, const Real* g, Real* dw) {
  static Real own[O];
  for (int64_t first = 0; first < m; first += 64) {
    const int64_t end = std::min(first + 64, m);
    for (int64_t i = 0; i < I; ++i) {
      std::fill(own, own + O, Real{0});
      for (int64_t row = first; row < end; ++row) {
        const Real value = x[row * I + i];
        for (int64_t o = 0; o < O; ++o) own[o] += value * g[row * O + o];
      }
      for (int64_t o = 0; o < O; ++o) dw[i * O + o] += own[o];
    }
  }
}

// Zeroed memory for `count` numbers that lives as long as the program.
template <typename T>
T* allocate(int64_t count) {
  const size_t bytes = (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64 + 64;
  void* const memory = std::aligned_alloc(64, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(std::memset(memory, 0, bytes));
}

// Every row of y becomes the bias; null: zero.
template <int64_t K>
void start_rows(int64_t rows, const Real* bias, Real* y) {
  if (bias == nullptr) std::fill(y, y + rows * K, Real{0});
  for (int64_t row = 0; bias != nullptr && row < rows; ++row) std::copy(bias, bias + K, y + row * K);
}

// The gradient of a bias.
template <int64_t K>
void column_sums(int64_t rows, const Real* g, Real* dbias) {
  static double sums[K];
  std::fill(sums, sums + K, 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < K; ++k) sums[k] += static_cast<double>(g[row * K + k]);
  }
  for (int64_t k = 0; k < K; ++k) dbias[k] += static_cast<Real>(sums[k]);
}

// The largest element of a line and the logarithm of the sum of exp(x - largest).
inline std::pair<Real, Real> log_sum(int64_t count, const Real* x, int64_t step) {
  Real top = x[0], sum = 0;
  for (int64_t i = 1; i < count; ++i) top = std::max(top, x[i * step]);
  for (int64_t i = 0; i < count; ++i) sum += std::exp(x[i * step] - top);
  return {top, std::log(sum)};
}

// -log softmax(logits)[label]; `smoothing`: the target's share that goes to all classes alike. Labels equal to `ignored`
// do not count, -1 where all do. `mean`: over those that count.
template <int64_t Classes>
Real softmax_cross_entropy(int64_t count, double smoothing, int64_t ignored, bool mean, const Real* x,
                           const int32_t* labels) {
  double sum = 0, counted = 0;
  for (int64_t row = 0; row < count; ++row) {
    if (labels[row] == ignored) continue;
    const Real* const logits = x + row * Classes;
    const auto [top, log] = log_sum(Classes, logits, 1);
    double target = static_cast<double>(logits[labels[row]]), all = 0;
    for (int64_t i = 0; smoothing != 0 && i < Classes; ++i) all += static_cast<double>(logits[i]);
    target = (1 - smoothing) * target + smoothing * all / static_cast<double>(Classes);
    sum += static_cast<double>(log) + (static_cast<double>(top) - target);
    counted += 1;
  }
  return static_cast<Real>(mean ? sum / std::max(counted, 1.0) : sum);
}

// (softmax - target) times the gradient of the loss.
template <int64_t Classes>
void softmax_cross_entropy_dx(int64_t count, double smoothing, int64_t ignored, bool mean, const Real* x,
                              const int32_t* labels, Real g, Real* dx) {
  const int64_t counted = count - std::count(labels, labels + count, ignored);
  const Real factor = mean ? g / static_cast<Real>(std::max<int64_t>(counted, 1)) : g;
  for (int64_t row = 0; row < count; ++row) {
    if (labels[row] == ignored) continue;
    const Real* const logits = x + row * Classes;
    const auto [top, log] = log_sum(Classes, logits, 1);
    for (int64_t i = 0; i < Classes; ++i) {
      const double hit = (i == labels[row] ? 1 - smoothing : 0) + smoothing / static_cast<double>(Classes);
      dx[row * Classes + i] += factor * (std::exp(logits[i] - top - log) - static_cast<Real>(hit));
    }
  }
}

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
inline std::ifstream open_file(const std::string& path, uint64_t& size) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || std::filesystem::is_directory(path))
    refuse("cannot read '" + path + "': " + std::strerror(file ? EISDIR : errno),
           "give a safetensors file, an .npy file, or a folder with a file NAME.npy for each tensor");
  size = static_cast<uint64_t>(file.tellg());
  file.seekg(0);
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
// {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}, then the tensors' bytes.
inline std::map<std::string, Tensor> load_safetensors(const std::string& path) {
  const std::string again = "write the file again, with the safetensors package";
  uint64_t size = 0, length = 0;
  std::ifstream file = open_file(path, size);
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || length > 100'000'000) refuse("'" + path + "' is no safetensors file", again);
  if (length + 8 > size) refuse("'" + path + "' ends within its header", again);
  std::string header(length, ' ');
  file.read(header.data(), static_cast<std::streamsize>(length));
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
    tensor.bytes.resize(static_cast<size_t>(bytes));
    file.seekg(static_cast<std::streamoff>(8 + length) + range[0]);
    file.read(tensor.bytes.data(), bytes);
  }
  if (!file) refuse("'" + path + "' cannot be read to its end", again);
  return tensors;
}

// An .npy file: "\x93NUMPY", a version, the length of a header, the header, which is a Python dict, then the numbers.
inline Tensor load_npy(const std::string& path) {
  const std::string again = "save it with numpy: np.save(file, np.ascontiguousarray(array))";
  uint64_t size = 0;
  std::ifstream file = open_file(path, size);
  unsigned char head[12] = {};
  file.read(reinterpret_cast<char*>(head), sizeof head);
  if (!file || std::memcmp(head, "\x93NUMPY", 6) != 0) refuse("'" + path + "' is no .npy file", again);
  const uint64_t begin = head[6] == 1 ? 10 : 12;
  const uint64_t length = head[8] + 256u * head[9] + (begin == 12 ? 65536u * head[10] : 0u);
  if (begin + length > size) refuse("'" + path + "' ends within its header", again);
  std::string header(length, ' ');
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(header.data(), static_cast<std::streamsize>(length));
  const std::map<std::string, std::string> types = {{"<f4", "F32"}, {"<f8", "F64"}, {"|u1", "U8"},
                                                    {"|b1", "U8"},  {"<i4", "I32"}, {"<i8", "I64"}};
  const auto type = types.find(field(path, header, "'descr': '", '\''));
  if (type == types.end())
    refuse("'" + path + "' has numbers of an unknown type: " + header.substr(0, header.find(',')),
           "give float32, float64, int32, int64, uint8 or bool: array.astype(np.float32)");
  Tensor tensor{type->second, sizes_in(path, field(path, header, "'shape': (", ')')), {}};
  if (header.find("'fortran_order': True") != std::string::npos && tensor.shape.size() > 1)
    refuse("'" + path + "' is stored column by column", again);
  const auto bytes = static_cast<uint64_t>(bytes_of(tensor.dtype, tensor.shape));
  if (bytes != size - begin - length)
    refuse("'" + path + "' has " + std::to_string(size - begin - length) + " bytes of numbers, its shape " +
               shape_text(tensor.shape) + " another number",
           again);
  tensor.bytes.resize(bytes);
  file.read(tensor.bytes.data(), static_cast<std::streamsize>(bytes));
  return tensor;
}

// The tensors `names`: of a safetensors file; of an .npy file, which is the only one; of a folder with NAME.npy for each.
inline std::map<std::string, Tensor> load_tensors(const std::string& path,
                                                  const std::vector<std::string>& names) {
  std::map<std::string, Tensor> tensors;
  if (path.ends_with(".npy") && names.size() != 1)
    refuse("'" + path + "' is one array, where " + std::to_string(names.size()) + " are needed",
           "give a folder with " + names.at(0) + ".npy and the like, or a safetensors file");
  if (path.ends_with(".npy"))
    tensors[names[0]] = load_npy(path);
  else if (!std::filesystem::is_directory(path))
    tensors = load_safetensors(path);
  else
    for (const std::string& name : names) tensors[name] = load_npy(path + "/" + name + ".npy");
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

// What an integer may be: in [begin, end), or `besides`.
struct Range {
  int64_t begin = 0, end = 0, besides = 0;
};

// An input of the model: its name, the sizes of one row of it, and what its integers may be: all the same, or one by one.
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
inline void check_inputs(const std::string& from, const std::map<std::string, Tensor>& tensors,
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
    if (!input.ranges.empty()) check_ranges(from, input, numbers<int64_t>(tensors, input.name));
  }
}

inline std::map<std::string, Tensor> load_inputs(const std::string& path, const std::vector<Input>& inputs) {
  std::vector<std::string> names;
  for (const Input& input : inputs) names.push_back(input.name);
  return load_tensors(path, names);
}

// An input with real numbers, of which a file has bytes or the like: divided, in float32.
inline std::vector<Real> scaled(const std::map<std::string, Tensor>& tensors, const std::string& name,
                                float divisor) {
  std::vector<Real> values;
  for (const float value : numbers<float>(tensors, name))
    values.push_back(static_cast<Real>(value / divisor));
  return values;
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

// The values of options, those of `known` where an option is not given.
inline std::map<std::string, std::string> options(int argc, char** argv,
                                                  std::map<std::string, std::string> known) {
  std::string all;
  for (const auto& [name, value] : known) all += " " + name;
  for (int i = 1; i < argc; i += 2) {
    if (!known.contains(argv[i])) refuse(std::string("there is no option ") + argv[i], "options:" + all);
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

struct Network {
  // Parameters, those that are trained first, and their gradients.
  static constexpr int64_t kTrained = 14218;
  Real* const parameters = allocate<Real>(14218);
  Real* const gradients = allocate<Real>(kTrained);
  Real* const first = allocate<Real>(kTrained);
  Real* const second = allocate<Real>(kTrained);
  int64_t updates = 0;
  Real* const fc1_weight = parameters + 0;  // [128,100]
  Real* const fc1_bias = parameters + 12800;  // [128]
  Real* const fc2_weight = parameters + 12928;  // [10,128]
  Real* const fc2_bias = parameters + 14208;  // [10]
  Real* const d_fc1_weight = gradients + 0;
  Real* const d_fc1_bias = gradients + 12800;
  Real* const d_fc2_weight = gradients + 12928;
  Real* const d_fc2_bias = gradients + 14208;

  // Values of a batch. Two that are never needed at once may share their place.
  Real* const arena = allocate<Real>(404016);
  Real* const h1 = arena + 0;
  Real* const d_h1 = arena + 128000;
  Real* const h2 = arena + 128000;
  Real* const d_h2 = arena + 256000;
  Real* const d_loss = arena + 256000;
  Real* const logits = arena + 384000;
  Real* const d_logits = arena + 394000;
  Real* const loss = arena + 404000;

  // The data, and the rows of the present batch.
  std::vector<Real> x_data;
  const Real* x = nullptr;
  std::vector<int32_t> y_data;
  const int32_t* y = nullptr;
  int64_t data_rows = 0, first_row = 0, rows = 0;

  // Parameters as files have them: name, shape, and the shape and order of axes in which they are held.
  const std::vector<Parameter> table = {
      {"fc1.weight", {128, 100}, {128, 100}, {1, 0}, 0, 12800, true},
      {"fc1.bias", {128}, {}, {}, 12800, 128, true},
      {"fc2.weight", {10, 128}, {10, 128}, {1, 0}, 12928, 1280, true},
      {"fc2.bias", {10}, {}, {}, 14208, 10, true},
  };

  void load_weights(const std::string& path) {
    load_parameters(path, table, parameters);
  }

  // The inputs as files have them: name, sizes of a row.
  const std::vector<Input> inputs = {
      {"x", {100}},
      {"y", {}, {{0, 10, 0}}},
  };

  void load_data(const std::string& path) {
    set_data(load_inputs(path, inputs), path);
    if (data_rows < kBatch)
      refuse("'" + path + "' has " + std::to_string(data_rows) + " rows, fewer than one batch",
             "give at least " + std::to_string(kBatch));
  }

  // `from`: where the tensors come from, for messages.
  void set_data(const std::map<std::string, Tensor>& tensors, const std::string& from) {
    check_inputs(from, tensors, inputs);
    data_rows = tensors.at(inputs[0].name).shape[0];
    first_row = 0;
    x_data = scaled(tensors, "x", 1.0);
    y_data = numbers<int32_t>(tensors, "y");
  }

  void set_batch(int64_t first, int64_t count) {
    rows = count;
    x = x_data.data() + first * 100;
    y = y_data.data() + first;
  }

  // In the order of the file; a partial last batch is left out.
  void next_batch() {
    if (first_row + kBatch > data_rows) first_row = 0;
    set_batch(first_row, std::min(kBatch, data_rows));
    first_row += kBatch;
  }

  // The inputs of the present batch, axes as files have them.
  std::vector<Tensor> batch() const {
    return {tensor_of(std::vector<Real>(x, x + rows * 100), {rows, 100}),
            tensor_of(std::vector<int32_t>(y, y + rows), {rows})};
  }

  // fc1: h1 = linear(x), [N,128].
  void h1_forward() {
    start_rows<128>(rows, fc1_bias, h1);
    linear<100, 128>(rows, x, fc1_weight, h1);
  }

  void h1_backward() {
    column_sums<128>(rows, d_h1, d_fc1_bias);
    linear_dw<100, 128>(rows, x, d_h1, d_fc1_weight);
  }

  // h2 = relu(h1), [N,128].
  void h2_forward() {
    #pragma GCC ivdep
    for (int64_t i = 0; i < rows * 128; ++i) {
      h2[i] = h1[i] <= 0 ? Real{0} : h1[i];
    }
  }

  void h2_backward() {
    std::fill(d_h1, d_h1 + rows * 128, Real{0});
    #pragma GCC ivdep
    for (int64_t i = 0; i < rows * 128; ++i) {
      d_h1[i] += d_h2[i] * (h1[i] <= 0 ? Real{0} : Real{1});
    }
  }

  // fc2: logits = linear(h2), [N,10].
  void logits_forward() {
    start_rows<10>(rows, fc2_bias, logits);
    linear<128, 10>(rows, h2, fc2_weight, logits);
  }

  void logits_backward() {
    std::fill(d_h2, d_h2 + rows * 128, Real{0});
    column_sums<10>(rows, d_logits, d_fc2_bias);
    linear_dw<128, 10>(rows, h2, d_logits, d_fc2_weight);
    linear_dx<128, 10>(rows, d_logits, fc2_weight, d_h2);
  }

  // loss = softmax_cross_entropy(logits, y), [].
  void loss_forward() {
    loss[0] = softmax_cross_entropy<10>(rows, 0, -1, true, logits, y);
  }

  void loss_backward() {
    std::fill(d_logits, d_logits + rows * 10, Real{0});
    softmax_cross_entropy_dx<10>(rows, 0, -1, true, logits, y, d_loss[0], d_logits);
  }

  // All steps in order; gives the loss.
  Real forward() {
    h1_forward();
    h2_forward();
    logits_forward();
    loss_forward();
    return loss[0];
  }

  void backward() {
    std::fill(gradients, gradients + kTrained, Real{0});
    d_loss[0] = 1;
    loss_backward();
    logits_backward();
    h2_backward();
    h1_backward();
  }

  // The prediction of the present batch, axes as the model has them.
  Tensor output() const {
    return tensor_of(std::vector<Real>(logits, logits + rows * 10), {rows, 10});
  }

  // The optimizer as it was before the first update.
  void restart() {
    std::fill(first, first + kTrained, Real{0});
    std::fill(second, second + kTrained, Real{0});
    updates = 0;
  }

  // One update of all trained parameters from their gradients.
  void update() {
    const Real rate = static_cast<Real>(kLearningRate);
    ++updates;
    const Real c1 = static_cast<Real>(1 - std::pow(0.9, static_cast<double>(updates)));
    const Real c2 = static_cast<Real>(1 - std::pow(0.999, static_cast<double>(updates)));
    for (int64_t i = 0; i < kTrained; ++i) {
      const Real g = gradients[i];
      first[i] = Real{0.9} * first[i] + Real{0.09999999999999998} * g;
      second[i] = Real{0.999} * second[i] + Real{0.0010000000000000009} * g * g;
      const Real move = first[i] / c1 / (std::sqrt(second[i] / c2) + Real{1e-07});
      parameters[i] -= rate * move;
    }
  }

  // One step on the present batch: its loss, before the update.
  Real train_step() {
    const Real seen = forward();
    backward();
    update();
    return seen;
  }
};

int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto given = options(argc, argv,
                             {{"--data", "data.safetensors"},
                              {"--weights", "weights.safetensors"},
                              {"--steps", "100"},
                              {"--out", ""}});
  const int64_t steps = whole_number(given, "--steps");
  static Network network;
  network.load_weights(given.at("--weights"));
  network.load_data(given.at("--data"));
  std::signal(SIGINT, interrupt);
  for (int64_t step = 0; step < steps && interrupted() == 0; ++step) {
    network.next_batch();
    const double loss = static_cast<double>(network.train_step());
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", static_cast<int>(step), loss);
  }
  const std::string out = given.at("--out");
  if (!out.empty()) save_parameters(out, network.table, network.parameters);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
