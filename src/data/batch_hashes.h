#pragma once

// Hashes of batches, which show whether every input pipeline delivers the recipe's batches in the same order.
//
// The hash of a batch: each input is encoded as float32 or int32, little-endian, row-major, in canonical
// layout; the SHA-256 of each, in hex, are sorted, joined and hashed again
// (runners/bakeoff_runner/pipeline.py does the same).

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "referee/evaluate.h"

namespace bakeoff {

// How many batches are compared: one epoch and two batches of the next, at most 512 batches and 256 MiB.
int64_t batches_to_compare(const ir::Workload& workload, const ir::Training& training, int64_t rows);

// The layout in which rows of equal axes (N,9,9) are hashed. They have the same shape with channels last, so a
// runner cannot know which of the two it sees.
enum class AlikeRows { kCanonical, kChannelsLast };

// True where the axes of a row, two or more, are of one length.
bool alike_with_channels_last(const ir::Shape& shape);

// Hashes of the first `count` batches in the order of the data file; incomplete batches are left out.
Result<std::vector<std::string>> batch_hashes(const ir::Workload& workload, const ir::Training& training,
                                              const std::filesystem::path& data, int64_t rows, int64_t count,
                                              AlikeRows alike = AlikeRows::kCanonical);

std::string batch_hash(const referee::Inputs& inputs, AlikeRows alike = AlikeRows::kCanonical);

// The shape of one row, for each input of the workload.
std::vector<std::vector<int64_t>> row_shapes(const ir::Workload& workload);

}  // namespace bakeoff
