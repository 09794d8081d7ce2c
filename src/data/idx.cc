#include "data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace bakeoff {
namespace {

constexpr unsigned char kUnsignedByte = 0x08;

Error bad(const std::string& title, const std::string& what) {
  return Error{.message = title + " is not a sound IDX file: " + what,
               .remedy = "make it or get it again: it is damaged or something else"};
}

uint32_t big_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct IdxType {
  unsigned char code;
  Element element;
};
constexpr IdxType kTypes[] = {{kUnsignedByte, {'u', 1, true}}, {0x09, {'i', 1, true}},
                              {0x0b, {'i', 2, true}},          {0x0c, {'i', 4, true}},
                              {0x0d, {'f', 4, true}},          {0x0e, {'f', 8, true}}};

// What the first four bytes say.
struct IdxStart {
  unsigned char type = 0;
  size_t axes = 0;
};
Result<IdxStart> parse_start(std::string_view bytes, const std::string& title) {
  if (bytes.size() < 4) return bad(title, fmt::format("{} bytes hold no header", bytes.size()));
  if (bytes[0] != 0 || bytes[1] != 0) return bad(title, "it does not start with two zero bytes");
  const IdxStart start{static_cast<unsigned char>(bytes[2]), static_cast<unsigned char>(bytes[3])};
  if (start.axes < 1 || start.axes > 4) return bad(title, fmt::format("{} axes", start.axes));
  return start;
}

// The sizes of the axes, four bytes each.
Result<std::vector<int64_t>> parse_sizes(std::string_view bytes, size_t axes, const std::string& title) {
  if (bytes.size() < 4 * axes) return bad(title, "it ends within its header");
  std::vector<int64_t> shape;
  uint64_t elements = 1;
  for (size_t i = 0; i < axes; ++i) {
    const uint32_t size = big_endian(bytes, 4 * i);
    if (size == 0) return bad(title, fmt::format("axis {} has size 0", i));
    if (elements > std::numeric_limits<uint64_t>::max() / 32 / size) return bad(title, "its shape overflows");
    elements *= size;
    shape.push_back(size);
  }
  return shape;
}

}  // namespace

Result<ArrayHeader> read_idx_header(ByteSource& source, const std::string& title) {
  char bytes[16];
  TRY(const size_t first, source.read(bytes, 4));
  TRY(const IdxStart start, parse_start({bytes, first}, title));
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const IdxType& known) { return known.code == start.type; });
  if (type == std::end(kTypes)) return bad(title, fmt::format("element type 0x{:02x}", start.type));
  TRY(const size_t rest, source.read(bytes, 4 * start.axes));
  TRY(auto shape, parse_sizes({bytes, rest}, start.axes, title));
  return ArrayHeader{.element = type->element, .shape = std::move(shape)};
}

Result<Idx> parse_idx(std::string_view bytes, const std::string& name) {
  const std::string title = "'" + name + "'";
  TRY(const IdxStart start, parse_start(bytes, title));
  if (start.type != kUnsignedByte)
    return bad(title, fmt::format("element type 0x{:02x}, not unsigned bytes (0x08)", start.type));
  Idx idx;
  TRY(idx.shape, parse_sizes(bytes.substr(4), start.axes, title));
  idx.data = bytes.substr(4 + 4 * start.axes);
  const auto elements = static_cast<size_t>(tensor::elements(idx.shape));
  if (idx.data.size() != elements) {
    return bad(title, fmt::format("{}: its header promises {} bytes, it has {}",
                                  idx.data.size() < elements ? "truncated" : "too long",
                                  bytes.size() - idx.data.size() + elements, bytes.size()));
  }
  return idx;
}

std::string idx_header(const std::vector<int64_t>& shape) {
  std::string header = {0, 0, static_cast<char>(kUnsignedByte), static_cast<char>(shape.size())};
  for (const int64_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) header.push_back(static_cast<char>(size >> shift & 0xff));
  }
  return header;
}

}  // namespace bakeoff
