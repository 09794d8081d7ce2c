#pragma once

// batches(arrays): what feeds the training step, or all steps of one call.
//
// | track              | a batch is                     | with steps_per_call > 1                         |
// |--------------------|--------------------------------|-------------------------------------------------|
// | equalised, predict | on the device, in file order   | all of them on the device, and which comes next |
// | as-is              | rows picked in random order    | a stack for a whole call, cut from every epoch  |

#include <cstdint>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::jax {

// Whether a call runs several training steps.
bool scans(const Request& request);

// Batches that the data must have: one, or as-is all those of a call.
int64_t least_batches(const Request& request);

void print_batches(CodeWriter& out, const Request& request);

}  // namespace bakeoff::emit::jax
