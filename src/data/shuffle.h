#pragma once

// One order of the data for all contenders, other than the file's: written down once, so that every pipeline
// of every framework meets it by reading in file order.

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace bakeoff {

// Writes a copy of a data file with its rows permuted, the same permutation in every tensor, drawn from
// `seed`.
Status write_shuffled(const std::filesystem::path& from, const std::filesystem::path& to, uint64_t seed);

}  // namespace bakeoff
