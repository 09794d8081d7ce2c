#include "data/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace bakeoff {
namespace {

using tensor::DType;

// IEEE 754 binary16.
struct Half {
  uint16_t bits;
  explicit operator float() const {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 0   ? std::ldexp(static_cast<float>(fraction), -24)
                       : exponent < 31 ? std::ldexp(static_cast<float>(fraction + 1024), exponent - 25)
                       : fraction == 0 ? std::numeric_limits<float>::infinity()
                                       : std::numeric_limits<float>::quiet_NaN();
    return bits >> 15 ? -size : size;
  }
};

template <typename T>
T load(const char* from, bool big_endian) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (big_endian) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

template <typename From, typename To>
bool holds(From value) {
  if constexpr (std::is_integral_v<From> && std::is_floating_point_v<To>) {
    constexpr int kDigits = std::numeric_limits<To>::digits;
    if constexpr (std::numeric_limits<From>::digits <= kDigits) return true;
    constexpr auto kMost = static_cast<From>(uint64_t{1} << std::min(kDigits, 62));
    if constexpr (std::is_signed_v<From>) return value >= -kMost && value <= kMost;
    return value <= kMost;
  } else if constexpr (std::is_integral_v<From>) {
    return std::in_range<To>(value);
  } else {
    return true;
  }
}

template <typename From, typename To>
std::optional<size_t> convert_all(std::string_view bytes, bool big_endian, std::string& out) {
  const size_t count = bytes.size() / sizeof(From), begin = out.size();
  out.resize(begin + count * sizeof(To));
  char* to = out.data() + begin;
  for (size_t i = 0; i < count; ++i, to += sizeof(To)) {
    const From value = load<From>(bytes.data() + i * sizeof(From), big_endian);
    if constexpr (std::is_integral_v<From>) {
      if (!holds<From, To>(value)) return i;
    }
    To stored;
    if constexpr (std::is_same_v<From, Half>)
      stored = static_cast<To>(static_cast<float>(value));
    else
      stored = static_cast<To>(value);
    std::memcpy(to, &stored, sizeof stored);
  }
  return std::nullopt;
}

template <typename From>
std::optional<size_t> convert_from(std::string_view bytes, bool big_endian, DType to, std::string& out) {
  switch (to) {
    case DType::kF64:
      return convert_all<From, double>(bytes, big_endian, out);
    case DType::kF32:
      return convert_all<From, float>(bytes, big_endian, out);
    case DType::kI64:
    case DType::kI32:
    case DType::kU8:
      break;
  }
  if constexpr (std::is_integral_v<From>) {
    if (to == DType::kI64) return convert_all<From, int64_t>(bytes, big_endian, out);
    if (to == DType::kI32) return convert_all<From, int32_t>(bytes, big_endian, out);
    return convert_all<From, uint8_t>(bytes, big_endian, out);
  }
  return 0;
}

tensor::Shape without_ones(const tensor::Shape& shape, size_t first) {
  tensor::Shape sizes;
  for (size_t i = first; i < shape.size(); ++i) {
    if (shape[i] != 1) sizes.push_back(shape[i]);
  }
  return sizes;
}

}  // namespace

std::string name(const Element& element) {
  if (element.kind == 'b') return "bool";
  const char* kind = element.kind == 'f' ? "float" : element.kind == 'i' ? "int" : "uint";
  return fmt::format("{}{}", kind, 8 * element.size);
}

Result<DType> stored_as(const Element& element, ir::DType wanted) {
  const bool real = element.kind == 'f';
  if (wanted == ir::DType::kI32) {
    if (real) {
      return Error{.message = fmt::format("holds {}, the workload's input holds integers", name(element)),
                   .remedy = "convert it first: numpy's .astype(\"int32\")"};
    }
    if (element.size == 1 && element.kind != 'i') return DType::kU8;
    const bool narrow = element.size < 4 || (element.size == 4 && element.kind == 'i');
    return narrow ? DType::kI32 : DType::kI64;
  }
  if (real) return element.size == 8 ? DType::kF64 : DType::kF32;
  if (element.size == 1 && element.kind != 'i') return DType::kU8;
  return element.size <= 2 ? DType::kF32 : DType::kF64;
}

std::optional<size_t> convert(const Element& element, std::string_view bytes, DType to, std::string& out) {
  const bool big = element.big_endian;
  if (element.kind == 'f') {
    if (element.size == 2) return convert_from<Half>(bytes, big, to, out);
    if (element.size == 4) return convert_from<float>(bytes, big, to, out);
    return convert_from<double>(bytes, big, to, out);
  }
  if (element.kind == 'i') {
    if (element.size == 1) return convert_from<int8_t>(bytes, big, to, out);
    if (element.size == 2) return convert_from<int16_t>(bytes, big, to, out);
    if (element.size == 4) return convert_from<int32_t>(bytes, big, to, out);
    return convert_from<int64_t>(bytes, big, to, out);
  }
  if (element.size == 1) return convert_from<uint8_t>(bytes, big, to, out);
  if (element.size == 2) return convert_from<uint16_t>(bytes, big, to, out);
  if (element.size == 4) return convert_from<uint32_t>(bytes, big, to, out);
  return convert_from<uint64_t>(bytes, big, to, out);
}

Result<tensor::Shape> fit_shape(const tensor::Shape& has, const ir::Type& wanted) {
  const auto differs = [&](std::string remedy) {
    return Error{.message = fmt::format("has shape {}, the workload's input is {}", tensor::to_text(has),
                                        ir::to_text(wanted)),
                 .remedy = std::move(remedy)};
  };
  if (has.empty()) return differs("it needs one row for each sample, along the first axis");
  if (has[0] < 1) return differs("it has no rows");
  tensor::Shape shape = ir::with_batch(wanted.shape, has[0]);
  if (without_ones(has, 1) == without_ones(shape, 1)) return shape;
  const size_t rank = shape.size();
  if (rank == has.size() && rank >= 3) {
    tensor::Shape channels_last = shape;
    std::rotate(channels_last.begin() + 1, channels_last.begin() + 2, channels_last.end());
    if (channels_last == has) {
      return differs(rank == 4 ? "the channels come second: numpy's x.transpose(0, 3, 1, 2)"
                               : "the channels come second: numpy's numpy.moveaxis(x, -1, 1)");
    }
  }
  return differs("N is the number of rows; every other size must be equal");
}

}  // namespace bakeoff
