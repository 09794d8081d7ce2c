#pragma once

// The table op -> function that prints its call in forward().

#include "emit/op_functions.h"
#include "emit/torch/forward.h"

namespace bakeoff::emit::torch {

const OpFunctions<ForwardPrinter>& forward_functions();

}  // namespace bakeoff::emit::torch
