#pragma once

// What LibTorch does where the user says nothing: the same as PyTorch.

#include <vector>

#include "emit/emit.h"

namespace bakeoff::emit::libtorch {

// The defaults that matter for the ops and the optimizer of the request.
std::vector<Default> defaults(const Request& request);

}  // namespace bakeoff::emit::libtorch
