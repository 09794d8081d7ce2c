#pragma once

// batches(arrays): what feeds the training step, or all steps of one call.
//
// | track               | steps_per_call = 1               | more |
// |---------------------|----------------------------------|---------------------------------------------------|
// | equalised, predict  | batches on the device, in order  | all of them on the device, and which comes next
// | | as-is               | rows picked in random order      | stacks of whole calls, cut from every epoch
// anew  |

#include <cstdint>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::jax {

// Batches that the data must have: one, or as-is all those of a call.
int64_t least_batches(const Request& request);

void print_batches(CodeWriter& out, const Request& request);

}  // namespace bakeoff::emit::jax
