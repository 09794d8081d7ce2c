#pragma once

// The program around the model: constants, train_step, loading, batches, main. What it offers to a worker
// that it is compiled into: runners/libtorch/script.h.

#include <string>
#include <vector>

#include "emit/emit.h"

namespace bakeoff::emit::libtorch {

std::string program_text(const Request& request, const std::vector<ir::Type>& types);

// The program's example: `commands` compile and run it. Equalised track.
Example example(const Request& request);

}  // namespace bakeoff::emit::libtorch
