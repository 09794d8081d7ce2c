#pragma once

// IDX files, the format of MNIST: big-endian; two zero bytes, a type code, the number of axes, a u32 size per
// axis, then the elements, last axis fastest (http://yann.lecun.com/exdb/mnist/, "The IDX file format").
// MNIST's labels and pictures are unsigned bytes (type code 0x08).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/byte_source.h"
#include "data/elements.h"

namespace bakeoff {

struct Idx {
  std::vector<int64_t> shape;  // [60000, 28, 28]; [60000]
  std::string_view data;       // one byte per element; points into the parsed bytes
};

// The header of a file with elements of any type; leaves `source` at the first one. Errors begin with `title`.
Result<ArrayHeader> read_idx_header(ByteSource& source, const std::string& title);

// Of unsigned bytes. Errors begin with `name`: not IDX, another element type, truncated ("promises 47,040,016 bytes, has 12"),
// bytes after the end, an empty or absurd shape.
Result<Idx> parse_idx(std::string_view bytes, const std::string& name);

// The header that parse_idx would read as `shape`.
std::string idx_header(const std::vector<int64_t>& shape);

}  // namespace bakeoff
