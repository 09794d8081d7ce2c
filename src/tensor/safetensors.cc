#include "tensor/safetensors.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <type_traits>

#include "base/files.h"
#include "base/sha256.h"

namespace bakeoff::tensor {
namespace {

static_assert(std::endian::native == std::endian::little);

using nlohmann::json;

constexpr std::array kDTypes = {DType::kF64, DType::kF32, DType::kI64, DType::kI32, DType::kU8};
constexpr uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation
constexpr double kExactIntegers = 0x1p53;

// Calls f with a value of the C++ type of `dtype`.
template <typename F>
auto with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::kF64:
      return f(double{});
    case DType::kF32:
      return f(float{});
    case DType::kI64:
      return f(int64_t{});
    case DType::kI32:
      return f(int32_t{});
    case DType::kU8:
      break;
  }
  return f(uint8_t{});
}

// True where `x` survives the conversion to T (float: rounding is welcome).
template <typename T, typename From>
bool fits(From x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::is_floating_point_v<From> || std::abs(static_cast<double>(x)) <= kExactIntegers;
  } else if constexpr (std::is_floating_point_v<From>) {
    constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr T kHalf = std::numeric_limits<T>::max() / 2 + 1;
    constexpr double kHigh = 2 * static_cast<double>(kHalf);
    return x >= kLow && x < kHigh && x == std::trunc(x);
  } else {
    return x >= std::numeric_limits<T>::min() && x <= std::numeric_limits<T>::max();
  }
}

template <typename Source>
Result<RawTensor> encode_any(const Source& tensor, DType dtype) {
  if (elements(tensor.shape) != static_cast<int64_t>(tensor.data.size())) {
    return Error{.message =
                     fmt::format("tensor {} holds {} elements", to_text(tensor.shape), tensor.data.size())};
  }
  RawTensor raw{.dtype = dtype, .shape = tensor.shape, .bytes = {}};
  raw.bytes.resize(tensor.data.size() * size_of(dtype));
  return with_type(dtype, [&](auto zero) -> Result<RawTensor> {
    using T = decltype(zero);
    char* to = raw.bytes.data();
    for (const auto x : tensor.data) {
      if (!fits<T>(x)) return Error{.message = fmt::format("{} does not fit {}", x, name(dtype))};
      const T value = static_cast<T>(x);
      std::memcpy(to, &value, sizeof value);
      to += sizeof value;
    }
    return std::move(raw);
  });
}

Result<DType> dtype_of(const std::string& word) {
  for (const DType dtype : kDTypes) {
    if (name(dtype) == word) return dtype;
  }
  return Error{.message = fmt::format("has dtype {}; F64, F32, I64, I32 and U8 are supported", word)};
}

// elements(shape) * width, or an error where a size is negative or the product overflows.
Result<size_t> byte_count(const Shape& shape, size_t width) {
  size_t bytes = width;
  for (const int64_t size : shape) {
    if (size < 0) return Error{.message = fmt::format("has the impossible shape {}", to_text(shape))};
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) {
      return Error{.message = fmt::format("has the impossible shape {}", to_text(shape))};
    }
  }
  return bytes;
}

bool is_count(const json& value) { return value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX; }

bool all_counts(const json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), is_count);
}

Result<SafetensorsFile::Entry> parse_entry(const std::string& tensor, const json& value, size_t data_size) {
  if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() ||
      !value.contains("shape") || !all_counts(value["shape"]) || !value.contains("data_offsets") ||
      !all_counts(value["data_offsets"]) || value["data_offsets"].size() != 2) {
    return Error{.message = "needs a dtype, a shape and two data_offsets"};
  }
  SafetensorsFile::Entry entry{.name = tensor};
  TRY(entry.dtype, dtype_of(value["dtype"].get<std::string>()));
  entry.shape = value["shape"].get<Shape>();
  entry.begin = value["data_offsets"][0].get<size_t>();
  entry.end = value["data_offsets"][1].get<size_t>();
  if (entry.begin > entry.end || entry.end > data_size) {
    return Error{
        .message = fmt::format("lies at bytes {} to {} of {} bytes of data: the file is truncated or corrupt",
                               entry.begin, entry.end, data_size)};
  }
  TRY(const size_t wanted, byte_count(entry.shape, size_of(entry.dtype)));
  if (wanted != entry.end - entry.begin) {
    return Error{.message =
                     fmt::format("is {} of shape {}, which takes {} bytes, but has {}", name(entry.dtype),
                                 to_text(entry.shape), wanted, entry.end - entry.begin)};
  }
  return entry;
}

// Parses the header; a name that comes twice is an error.
Result<json> parse_json(std::string_view text) {
  std::set<std::string> names;
  std::string repeated;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth == 1 && event == json::parse_event_t::key && !names.insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return true;
  };
  json header = json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (!repeated.empty()) return Error{.message = fmt::format("tensor '{}' is there twice", repeated)};
  if (header.is_discarded() || !header.is_object())
    return Error{.message = "the header is not a JSON object"};
  return header;
}

// Without holes and overlaps, from the first byte of the data to the last.
Status check_tiling(const std::vector<SafetensorsFile::Entry>& entries, size_t data_size) {
  size_t at = 0;
  for (const auto& entry : entries) {
    if (entry.begin < at)
      return Error{.message = fmt::format("tensor '{}' overlaps its neighbour", entry.name)};
    if (entry.begin > at)
      return Error{.message = fmt::format("there is a hole before tensor '{}'", entry.name)};
    at = entry.end;
  }
  if (at != data_size) return Error{.message = fmt::format("{} bytes belong to no tensor", data_size - at)};
  return Done{};
}

}  // namespace

std::string name(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "F64";
    case DType::kF32:
      return "F32";
    case DType::kI64:
      return "I64";
    case DType::kI32:
      return "I32";
    case DType::kU8:
      break;
  }
  return "U8";
}

size_t size_of(DType dtype) {
  return with_type(dtype, [](auto zero) { return sizeof zero; });
}

Result<RawTensor> encode(const Tensor& tensor, DType dtype) { return encode_any(tensor, dtype); }
Result<RawTensor> encode(const IntTensor& tensor, DType dtype) { return encode_any(tensor, dtype); }

namespace {

struct Header {
  std::string text;  // with its length before it
  std::vector<size_t> sizes;
};

// `tensors` in the order of the file.
Result<Header> header_of(const std::filesystem::path& path, const std::vector<TensorSource>& tensors,
                         const Metadata& metadata) {
  Header made;
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t at = 0;
  for (const TensorSource& tensor : tensors) {
    const Result<size_t> size = byte_count(tensor.shape, size_of(tensor.dtype));
    if (tensor.name == "__metadata__" || header.contains(tensor.name) || !size) {
      return Error{.message =
                       fmt::format("cannot write '{}': tensor '{}' is repeated or has an impossible shape",
                                   path.string(), tensor.name)};
    }
    header[tensor.name] = {
        {"dtype", name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {at, at + *size}}};
    at += *size;
    made.sizes.push_back(*size);
  }
  std::string text = header.dump(-1, ' ', true, json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  made.text.assign(sizeof length, '\0');
  std::memcpy(made.text.data(), &length, sizeof length);
  made.text += text;
  return made;
}

// Writes header and tensors; `sum`, if it is not null, takes all data.
Status write_tensors(FileWriter& file, const std::filesystem::path& path, const Header& header,
                     const std::vector<TensorSource>& tensors, Sha256* sum) {
  CHECK_OK(file.append(header.text));
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t written = 0;
    CHECK_OK(tensors[i].write([&](std::string_view bytes) {
      written += bytes.size();
      if (sum != nullptr) sum->add(bytes);
      return file.append(bytes);
    }));
    if (written == header.sizes[i]) continue;
    return Error{.message = fmt::format("cannot write '{}': tensor '{}' has {} bytes, its shape {} takes {}",
                                        path.string(), tensors[i].name, written, to_text(tensors[i].shape),
                                        header.sizes[i])};
  }
  return Done{};
}

void widest_first(std::vector<TensorSource>& tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorSource& a, const TensorSource& b) {
    return size_of(a.dtype) > size_of(b.dtype);
  });
}

}  // namespace

Status write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                         const Metadata& metadata) {
  std::vector<TensorSource> sources;
  for (const auto& [key, raw] : tensors) sources.push_back(source_of(key, raw));
  return write_sources(path, std::move(sources), metadata);
}

Status write_sources(const std::filesystem::path& path, std::vector<TensorSource> tensors,
                     const Metadata& metadata) {
  widest_first(tensors);
  TRY(const Header header, header_of(path, tensors, metadata));
  TRY(FileWriter file, FileWriter::create(path));
  CHECK_OK(write_tensors(file, path, header, tensors, nullptr));
  return file.finish();
}

TensorSource source_of(std::string name, const RawTensor& raw) {
  return {.name = std::move(name), .dtype = raw.dtype, .shape = raw.shape, .write = [&raw](const Sink& sink) {
            return sink(raw.bytes);
          }};
}

TensorSource source_of(std::string name, const Tensor& tensor, DType dtype) {
  return {.name = std::move(name),
          .dtype = dtype,
          .shape = tensor.shape,
          .write = [&tensor, dtype](const Sink& sink) -> Status {
            TRY(const RawTensor raw, encode(tensor, dtype));
            return sink(raw.bytes);
          }};
}

Status stream_safetensors(const std::filesystem::path& path, std::vector<TensorSource> tensors,
                          Metadata metadata) {
  widest_first(tensors);
  // The digest is known at the end: it takes the place of as many zeros.
  const std::string unknown(64, '0');
  metadata[kDigest] = unknown;
  TRY(const Header header, header_of(path, tensors, metadata));
  TRY(FileWriter file, FileWriter::create(path));
  Sha256 sum;
  CHECK_OK(write_tensors(file, path, header, tensors, &sum));
  CHECK_OK(
      file.replace(header.text.find('"' + unknown + '"', header.text.find("\"sha256\":")) + 1, sum.hex()));
  return file.finish();
}

struct SafetensorsFile::Mapping {
  const char* data = nullptr;
  size_t size = 0;
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data != nullptr) ::munmap(const_cast<char*>(data), size);
  }
  // Pages that were read count as this process's memory until it says that it is done with them.
  void leave(size_t begin, size_t end) const {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t from = (begin + page - 1) / page * page;
    if (end > from) ::madvise(const_cast<char*>(data) + from, end - from, MADV_DONTNEED);
  }
};

struct SafetensorsFile::Rows {
  DType dtype = DType::kF64;
  Shape shape = {};
  const char* data = nullptr;
};

Error SafetensorsFile::error(const std::string& message) const {
  return Error{.message = fmt::format("'{}': {}", path_, message)};
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile file;
  file.path_ = path.string();
  TRY(const int fd, open_regular(path));
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || info.st_size < 8) {
    ::close(fd);
    return file.error("is too short for a safetensors file");
  }
  auto mapping = std::make_shared<Mapping>();
  const auto size = static_cast<size_t>(info.st_size);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int code = errno;
  ::close(fd);
  if (at == MAP_FAILED) return file.error(fmt::format("cannot map: {}", std::strerror(code)));
  mapping->data = static_cast<const char*>(at);
  mapping->size = size;
  file.mapping_ = mapping;
  CHECK_OK(file.parse_header());
  return file;
}

Status SafetensorsFile::parse_header() {
  uint64_t length = 0;
  std::memcpy(&length, mapping_->data, sizeof length);
  if (length > kMaxHeader || length > mapping_->size - 8) {
    return error(
        fmt::format("claims a header of {} bytes, the file has {}: it is truncated or not a safetensors file",
                    length, mapping_->size));
  }
  data_at_ = 8 + static_cast<size_t>(length);
  const size_t data_size = mapping_->size - data_at_;
  Result<json> header = parse_json({mapping_->data + 8, static_cast<size_t>(length)});
  if (!header) return error(header.error().message);
  for (const auto& [key, value] : header->items()) {
    if (key == "__metadata__") {
      for (const auto& [k, v] : value.items()) {
        if (!value.is_object() || !v.is_string()) return error("__metadata__ must map text to text");
        metadata_[k] = v.get<std::string>();
      }
      continue;
    }
    Result<Entry> entry = parse_entry(key, value, data_size);
    if (!entry) return error(fmt::format("tensor '{}' {}", key, entry.error().message));
    entries_.push_back(*entry);
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  if (const Status tiled = check_tiling(entries_, data_size); !tiled) return error(tiled.error().message);
  return Done{};
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view tensor) const {
  for (const Entry& entry : entries_) {
    if (entry.name == tensor) return &entry;
  }
  return nullptr;
}

Result<const SafetensorsFile::Entry*> SafetensorsFile::want(std::string_view tensor) const {
  const Entry* entry = find(tensor);
  if (entry == nullptr) return error(fmt::format("has no tensor '{}'", tensor));
  return entry;
}

Result<std::string_view> SafetensorsFile::bytes(std::string_view tensor) const {
  TRY(const Entry* entry, want(tensor));
  return std::string_view(mapping_->data + data_at_ + entry->begin, entry->end - entry->begin);
}

Result<SafetensorsFile::Rows> SafetensorsFile::rows(std::string_view tensor, int64_t first,
                                                    int64_t count) const {
  TRY(const Entry* entry, want(tensor));
  if (entry->shape.empty()) return error(fmt::format("tensor '{}' is a scalar, it has no rows", tensor));
  const int64_t have = entry->shape[0];
  if (first < 0 || count < 0 || first > have || count > have - first) {
    return error(
        fmt::format("tensor '{}' has {} rows: there are no {} from row {} on", tensor, have, count, first));
  }
  Rows part{.dtype = entry->dtype, .shape = entry->shape};
  part.shape[0] = 1;
  const size_t stride = static_cast<size_t>(elements(part.shape)) * size_of(entry->dtype);
  part.shape[0] = count;
  part.data = mapping_->data + data_at_ + entry->begin + static_cast<size_t>(first) * stride;
  return part;
}

namespace {

// Converts `out.data.size()` elements of `dtype`; fails on an integer that a double cannot hold.
template <typename Out>
Status convert(DType dtype, const char* from, Out& out) {
  using To = typename decltype(out.data)::value_type;
  return with_type(dtype, [&](auto zero) -> Status {
    using T = decltype(zero);
    for (To& to : out.data) {
      T value;
      std::memcpy(&value, from, sizeof value);
      from += sizeof value;
      if constexpr (std::is_integral_v<T>) {
        if (!fits<To>(value)) return Error{.message = fmt::format("{} does not fit a double", value)};
      }
      to = static_cast<To>(value);
    }
    return Done{};
  });
}

}  // namespace

Result<Tensor> SafetensorsFile::read(std::string_view tensor) const {
  TRY(const Entry* entry, want(tensor));
  Tensor out = zeros(entry->shape);
  const Status status = convert(entry->dtype, mapping_->data + data_at_ + entry->begin, out);
  mapping_->leave(data_at_ + entry->begin, data_at_ + entry->end);
  if (!status) return error(fmt::format("tensor '{}': {}", tensor, status.error().message));
  return out;
}

Result<Tensor> SafetensorsFile::read_rows(std::string_view tensor, int64_t first, int64_t count) const {
  TRY(const Rows part, rows(tensor, first, count));
  Tensor out = zeros(part.shape);
  const Status status = convert(part.dtype, part.data, out);
  if (!status) return error(fmt::format("tensor '{}': {}", tensor, status.error().message));
  return out;
}

Result<IntTensor> SafetensorsFile::read_int_rows(std::string_view tensor, int64_t first,
                                                 int64_t count) const {
  TRY(const Rows part, rows(tensor, first, count));
  if (part.dtype == DType::kF64 || part.dtype == DType::kF32) {
    return error(fmt::format("tensor '{}' is {}, integers are wanted", tensor, name(part.dtype)));
  }
  IntTensor out{.shape = part.shape, .data = {}};
  out.data.resize(static_cast<size_t>(elements(out.shape)));
  CHECK_OK(convert(part.dtype, part.data, out));
  return out;
}

Result<IntTensor> SafetensorsFile::read_ints(std::string_view tensor) const {
  TRY(const Entry* entry, want(tensor));
  if (entry->shape.empty())
    return error(fmt::format("tensor '{}' is a scalar, integers per row are wanted", tensor));
  return read_int_rows(tensor, 0, entry->shape[0]);
}

}  // namespace bakeoff::tensor
