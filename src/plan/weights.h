#pragma once

// The parameters that every worker loads.

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "referee/evaluate.h"
#include "tensor/safetensors.h"

namespace bakeoff {

// Writes initial weights (float32) to `file`; gives them back rounded.
Result<referee::Weights> write_initial_weights(const ir::Workload& workload, uint64_t seed,
                                               const std::filesystem::path& file);

// Writes parameters (trainable ones alone, or all) as `dtype` under their names.
Status write_parameters(const ir::Workload& workload, const referee::Weights& weights, tensor::DType dtype,
                        bool trainable_only, const std::filesystem::path& file);

// Writes in float32 and reads back: everybody starts from the same rounded numbers.
Result<referee::Weights> rounded(const ir::Workload& workload, const referee::Weights& weights,
                                 const std::filesystem::path& file);

}  // namespace bakeoff
