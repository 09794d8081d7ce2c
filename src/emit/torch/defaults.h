#pragma once

// What PyTorch does where the user says nothing (checked against the installed one by test_torch_adapter.py).

#include <vector>

#include "emit/emit.h"

namespace bakeoff::emit::torch {

// The defaults that matter for the ops and the optimizer of the request.
std::vector<Default> defaults(const Request& request);

}  // namespace bakeoff::emit::torch
