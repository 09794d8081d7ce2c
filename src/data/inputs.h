#pragma once

// Reads batches of a data file for the referee.

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "referee/evaluate.h"

namespace bakeoff {

// Rows [first, first + count) of every input. Floats are float32(raw) / float32(divisor), rounded once, as
// the emitted scripts compute them.
Result<referee::Inputs> read_inputs(const ir::Workload& workload, const std::filesystem::path& data,
                                    double divisor, int64_t first, int64_t count);

// The batches of the first `steps` training steps in file order: whole batches only; after the last one they
// start again.
Result<std::vector<referee::Inputs>> read_batches(const ir::Workload& workload, const ir::Training& training,
                                                  const std::filesystem::path& data, int64_t rows,
                                                  int64_t steps);

// Writes a data file of `count` rows; row i is row i % distinct of `data`.
Status copy_rows(const std::filesystem::path& data, int64_t count, int64_t distinct,
                 const std::filesystem::path& file);

}  // namespace bakeoff
