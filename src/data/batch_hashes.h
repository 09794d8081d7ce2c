#pragma once

// Whether every pipeline delivers the same batches in the same order: their hashes, as the recipe has them.
//
// The hash of a batch: each input as float32 or int32, little-endian, row-major, in canonical layout; the
// SHA-256 of each in hex, sorted, joined, and hashed again (runners/bakeoff_runner/pipeline.py does the
// same).

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "referee/evaluate.h"

namespace bakeoff {

// How many batches are compared: all of an epoch and two of the next, at most 512 of them and 256 MiB.
int64_t batches_to_compare(const ir::Workload& workload, const ir::Training& training, int64_t rows);

// Of the first `count` batches in the order of the data file, partial ones left out.
Result<std::vector<std::string>> batch_hashes(const ir::Workload& workload, const ir::Training& training,
                                              const std::filesystem::path& data, int64_t rows, int64_t count);

std::string batch_hash(const referee::Inputs& inputs);

// The shape of a row of each input of the workload.
std::vector<std::vector<int64_t>> row_shapes(const ir::Workload& workload);

}  // namespace bakeoff
