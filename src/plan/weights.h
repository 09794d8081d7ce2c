#pragma once

// Files of the parameters that every worker loads.

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "referee/evaluate.h"
#include "tensor/safetensors.h"

namespace bakeoff {

// Writes the initial weights to `file` and returns them as `rounded` does. They are those of the
// safetensors file `given`, or drawn from `seed` where it is empty. Errors: a parameter is missing there, has
// another shape, is not finite; a tensor there is no parameter, unless the workload is
// the `part` that predicts.
Result<referee::Weights> write_initial_weights(const ir::Workload& workload, uint64_t seed,
                                               const std::filesystem::path& given,
                                               const std::filesystem::path& file, bool part = false);

// Writes the parameters (all, or only trainable ones) as `dtype` under their names; as float32, frozen tables whose
// numbers stand in the workload's text keep them (referee::held_as).
Status write_parameters(const ir::Workload& workload, const referee::Weights& weights, tensor::DType dtype,
                        bool trainable_only, const std::filesystem::path& file);

// Writes them as float32 and reads them back: every contender starts from the same rounded numbers.
Result<referee::Weights> rounded(const ir::Workload& workload, const referee::Weights& weights,
                                 const std::filesystem::path& file);

}  // namespace bakeoff
