#pragma once

// One shuffled order of the data for all contenders. It is written to a file once, so every pipeline of every
// framework gets it by reading in file order.

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace bakeoff {

// Writes a copy of a data file with permuted rows: one permutation, drawn from `seed`, for all tensors.
Status write_shuffled(const std::filesystem::path& from, const std::filesystem::path& to, uint64_t seed);

}  // namespace bakeoff
