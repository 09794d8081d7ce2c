#pragma once

// The table op -> function that prints its call in forward().

#include "emit/libtorch/forward.h"
#include "emit/op_functions.h"

namespace bakeoff::emit::libtorch {

const OpFunctions<ForwardPrinter>& forward_functions();

}  // namespace bakeoff::emit::libtorch
