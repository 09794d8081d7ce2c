#include "data/idx.h"

#include <fmt/format.h>

#include <limits>

namespace bakeoff {
namespace {

constexpr unsigned char kUnsignedByte = 0x08;

Error bad(const std::string& name, const std::string& what) {
  return Error{.message = "'" + name + "' is not a sound IDX file: " + what,
               .remedy = "delete it and get it again: it is damaged, compressed or something else"};
}

uint32_t big_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

Result<Idx> parse_idx(std::string_view bytes, const std::string& name) {
  if (bytes.size() < 4) return bad(name, fmt::format("{} bytes hold no header", bytes.size()));
  if (bytes[0] != 0 || bytes[1] != 0) return bad(name, "it does not start with two zero bytes");
  const auto type = static_cast<unsigned char>(bytes[2]);
  if (type != kUnsignedByte)
    return bad(name, fmt::format("element type 0x{:02x}, not unsigned bytes (0x08)", type));
  const size_t axes = static_cast<unsigned char>(bytes[3]);
  if (axes < 1 || axes > 4) return bad(name, fmt::format("{} axes", axes));
  const size_t header = 4 + 4 * axes;
  if (bytes.size() < header) return bad(name, "it ends within its header");
  Idx idx;
  uint64_t elements = 1;
  for (size_t i = 0; i < axes; ++i) {
    const uint32_t size = big_endian(bytes, 4 + 4 * i);
    if (size == 0) return bad(name, fmt::format("axis {} has size 0", i));
    if (elements > std::numeric_limits<uint64_t>::max() / 2 / size) return bad(name, "its shape overflows");
    elements *= size;
    idx.shape.push_back(size);
  }
  if (bytes.size() - header != elements) {
    return bad(name, fmt::format("{}: its header promises {} bytes, it has {}",
                                 bytes.size() - header < elements ? "truncated" : "too long",
                                 header + elements, bytes.size()));
  }
  idx.data = bytes.substr(header);
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
