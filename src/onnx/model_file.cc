#include "onnx/model_file.h"

#include <fmt/format.h>
#include <onnx/onnx.pb.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/files.h"

namespace bakeoff::onnx {
namespace {

// A file's bytes, mapped.
class Mapped {
 public:
  static Result<Mapped> open(const fs::path& path) {
    TRY(const int fd, open_regular(path));
    struct stat about {};
    Mapped mapped;
    if (fstat(fd, &about) != 0) about.st_size = 0;
    mapped.size_ = static_cast<size_t>(about.st_size);
    if (mapped.size_ > 0) mapped.at_ = mmap(nullptr, mapped.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (mapped.at_ == MAP_FAILED) return Error{.message = fmt::format("cannot map '{}'", path.string())};
    return mapped;
  }
  Mapped(Mapped&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() {
    if (size_ > 0 && at_ != MAP_FAILED) munmap(at_, size_);
  }
  std::string_view bytes() const { return {static_cast<const char*>(at_), size_}; }

 private:
  Mapped() = default;
  void* at_ = nullptr;
  size_t size_ = 0;
};

struct DataType {
  const char* name;
  size_t bytes;  // 0: not read
  Kind kind;
};
// By number.
constexpr DataType kTypes[] = {
    {"undefined", 0, Kind::kInt},  {"float", 4, Kind::kFloat},   {"uint8", 1, Kind::kInt},
    {"int8", 1, Kind::kInt},       {"uint16", 2, Kind::kInt},    {"int16", 2, Kind::kInt},
    {"int32", 4, Kind::kInt},      {"int64", 8, Kind::kInt},     {"string", 0, Kind::kInt},
    {"bool", 1, Kind::kBool},      {"float16", 2, Kind::kFloat}, {"double", 8, Kind::kFloat},
    {"uint32", 4, Kind::kInt},     {"uint64", 8, Kind::kInt},    {"complex64", 0, Kind::kFloat},
    {"complex128", 0, Kind::kInt}, {"bfloat16", 2, Kind::kFloat}};

double of_half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

double of_bfloat(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

template <typename T, typename Out, typename Convert>
void read_as(std::string_view bytes, std::vector<Out>& out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = convert(value);
  }
}

void read_raw(int32_t type, std::string_view bytes, Array& array) {
  const auto real = [](auto v) { return static_cast<double>(v); };
  const auto whole = [](auto v) { return static_cast<int64_t>(v); };
  switch (type) {
    case 1:
      return read_as<float>(bytes, array.reals, real);
    case 11:
      return read_as<double>(bytes, array.reals, real);
    case 10:
      return read_as<uint16_t>(bytes, array.reals, of_half);
    case 16:
      return read_as<uint16_t>(bytes, array.reals, of_bfloat);
    case 3:
      return read_as<int8_t>(bytes, array.ints, whole);
    case 4:
      return read_as<uint16_t>(bytes, array.ints, whole);
    case 5:
      return read_as<int16_t>(bytes, array.ints, whole);
    case 6:
      return read_as<int32_t>(bytes, array.ints, whole);
    case 12:
      return read_as<uint32_t>(bytes, array.ints, whole);
    case 7:
    case 13:
      return read_as<int64_t>(bytes, array.ints, whole);
    default:
      return read_as<uint8_t>(bytes, array.ints, whole);
  }
}

// The numbers as fields of the message.
Status read_fields(const wire::TensorProto& t, Array& array) {
  const auto wrong = [&](int got) {
    return Error{.message = fmt::format("the tensor '{}' of shape {} holds {} numbers", t.name(),
                                        tensor::to_text(array.shape), got)};
  };
  const auto copy = [&](const auto& from, auto& to, auto convert) -> Status {
    if (static_cast<size_t>(from.size()) != to.size()) return wrong(from.size());
    std::transform(from.begin(), from.end(), to.begin(), convert);
    return Done{};
  };
  const auto real = [](auto v) { return static_cast<double>(v); };
  const auto whole = [](auto v) { return static_cast<int64_t>(v); };
  switch (t.data_type()) {
    case 1:
      return copy(t.float_data(), array.reals, real);
    case 11:
      return copy(t.double_data(), array.reals, real);
    case 10:
      return copy(t.int32_data(), array.reals, [](int32_t v) { return of_half(static_cast<uint16_t>(v)); });
    case 16:
      return copy(t.int32_data(), array.reals, [](int32_t v) { return of_bfloat(static_cast<uint16_t>(v)); });
    case 7:
      return copy(t.int64_data(), array.ints, whole);
    case 12:
    case 13:
      return copy(t.uint64_data(), array.ints, whole);
    default:
      return copy(t.int32_data(), array.ints, whole);
  }
}

struct ExternalPlace {
  fs::path file = {};
  uint64_t offset = 0;
  std::optional<uint64_t> length = {};
};

Result<ExternalPlace> external_place(const wire::TensorProto& t, const fs::path& model) {
  std::map<std::string, std::string> keys;
  for (const auto& pair : t.external_data()) keys[pair.key()] = pair.value();
  const auto number = [&](const char* key) -> Result<uint64_t> {
    const std::string& text = keys[key];
    uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size())
      return Error{.message = fmt::format("the tensor '{}': '{}' is no {}", t.name(), text, key)};
    return value;
  };
  const fs::path location(keys["location"]);
  const auto refuse = [&](const std::string& why) {
    return Error{.message = fmt::format("the tensor '{}' lies in '{}', {}", t.name(), location.string(), why),
                 .remedy = "external data must be files in the model's own folder"};
  };
  if (location.empty() || keys["location"].find('\0') != std::string::npos) return refuse("which is no path");
  if (location.is_absolute()) return refuse("an absolute path");
  if (std::find(location.begin(), location.end(), "..") != location.end()) return refuse("a path with '..'");
  const fs::path folder = model.has_parent_path() ? model.parent_path() : fs::path(".");
  std::error_code problem;
  const fs::path home = fs::canonical(folder, problem);
  const fs::path file = problem ? fs::path() : fs::canonical(folder / location, problem);
  if (problem) return refuse("which does not exist");
  const auto [end, ignored] = std::mismatch(home.begin(), home.end(), file.begin(), file.end());
  if (end != home.end()) return refuse("a link that leaves the folder");
  ExternalPlace place{.file = file};
  if (!keys["offset"].empty()) {
    TRY(place.offset, number("offset"));
  }
  if (!keys["length"].empty()) {
    TRY(place.length, number("length"));
  }
  return place;
}

}  // namespace

std::string type_name(int32_t type) {
  if (type >= 0 && static_cast<size_t>(type) < std::size(kTypes)) return kTypes[type].name;
  return fmt::format("type {}", type);
}

Result<Kind> kind_of(int32_t type) {
  if (type >= 0 && static_cast<size_t>(type) < std::size(kTypes) && kTypes[type].bytes > 0)
    return kTypes[type].kind;
  return Error{.message = fmt::format("'{}' is no type of numbers that is read", type_name(type))};
}

ModelFile::ModelFile(fs::path path, std::unique_ptr<wire::ModelProto> model)
    : path_(std::move(path)), model_(std::move(model)) {}
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;
ModelFile::~ModelFile() = default;

Result<ModelFile> ModelFile::open(const fs::path& path) {
  TRY(const Mapped mapped, Mapped::open(path));
  const std::string_view bytes = mapped.bytes();
  if (bytes.size() >= INT_MAX) {
    return Error{.message = fmt::format("'{}' has {} bytes; a protobuf has less than 2 GB", path.string(),
                                        bytes.size()),
                 .remedy = "save its weights as external data: onnx.save(..., save_as_external_data=True)"};
  }
  auto model = std::make_unique<wire::ModelProto>();
  if (!model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{.message = fmt::format("'{}' is no ONNX file, or a truncated one", path.string())};
  if (!model->has_graph() || model->opset_import_size() == 0) {
    return Error{.message = fmt::format("'{}' is no ONNX model: it has no {}", path.string(),
                                        model->has_graph() ? "opset" : "graph")};
  }
  return ModelFile(path, std::move(model));
}

Result<ArrayPtr> ModelFile::decode(const wire::TensorProto& t) const {
  TRY(const Kind kind, kind_of(t.data_type()));
  auto array = std::make_shared<Array>();
  array->kind = kind;
  array->shape.assign(t.dims().begin(), t.dims().end());
  TRY(const int64_t elements, count(array->shape));
  const size_t bytes = static_cast<size_t>(elements) * kTypes[t.data_type()].bytes;
  const auto wrong = [&](size_t got) {
    return Error{.message = fmt::format("the tensor '{}' of type {} and shape {} needs {} bytes and has {}",
                                        t.name(), type_name(t.data_type()), tensor::to_text(array->shape),
                                        bytes, got)};
  };
  // Checked before anything is allocated: the shape may be a lie.
  const auto allocate = [&] {
    if (array->is_float())
      array->reals.resize(static_cast<size_t>(elements));
    else
      array->ints.resize(static_cast<size_t>(elements));
  };
  if (t.data_location() == 1) {
    TRY(const ExternalPlace place, external_place(t, path_));
    TRY(const Mapped mapped, Mapped::open(place.file));
    const std::string_view all = mapped.bytes();
    if (place.offset > all.size() || all.size() - place.offset < bytes) return wrong(all.size());
    if (place.length && *place.length != bytes) return wrong(*place.length);
    allocate();
    read_raw(t.data_type(), all.substr(place.offset, bytes), *array);
  } else if (t.has_raw_data()) {
    if (t.raw_data().size() != bytes) return wrong(t.raw_data().size());
    allocate();
    read_raw(t.data_type(), t.raw_data(), *array);
  } else {
    const int held = t.float_data_size() + t.double_data_size() + t.int32_data_size() + t.int64_data_size() +
                     t.uint64_data_size();
    if (held != elements) return wrong(static_cast<size_t>(held) * kTypes[t.data_type()].bytes);
    allocate();
    CHECK_OK(read_fields(t, *array));
  }
  return ArrayPtr(std::move(array));
}

}  // namespace bakeoff::onnx
