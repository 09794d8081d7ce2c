#pragma once

// The section [largest_batch]. Internal to this room.

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "recipe/reader.h"
#include "recipe/studies.h"

namespace bakeoff::recipe {

Result<LargestBatch> read_largest_batch(const Reader& reader, bool wanted);

// Bytes of "4 GiB", "1.5 TB", "512 MiB", "1000000 B": a number above zero and a unit. Error: the text is no
// size.
Result<int64_t> parse_size(std::string_view text);

}  // namespace bakeoff::recipe
