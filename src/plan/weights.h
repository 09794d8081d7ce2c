#pragma once

// Files of the parameters that every worker loads.

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "referee/evaluate.h"
#include "tensor/safetensors.h"

namespace bakeoff {

// Writes the initial weights (float32) to `file`; returns them, rounded to float32.
Result<referee::Weights> write_initial_weights(const ir::Workload& workload, uint64_t seed,
                                               const std::filesystem::path& file);

// Writes the parameters (all, or only trainable ones) as `dtype` under their names.
Status write_parameters(const ir::Workload& workload, const referee::Weights& weights, tensor::DType dtype,
                        bool trainable_only, const std::filesystem::path& file);

// Writes them as float32 and reads them back: every contender starts from the same rounded numbers.
Result<referee::Weights> rounded(const ir::Workload& workload, const referee::Weights& weights,
                                 const std::filesystem::path& file);

}  // namespace bakeoff
