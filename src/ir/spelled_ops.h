#pragma once

// The spellings of ops that are one call, or a few, in every framework.

#include "ir/spelling.h"
#include "ir/workload.h"

namespace bakeoff::ir {

// Null for an op that emitters print in functions of their own.
const Spellings* spellings(Op op);

}  // namespace bakeoff::ir
