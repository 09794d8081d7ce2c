#pragma once

// The workload as one C++20 program without dependencies (docs/native.md).

#include "emit/emit.h"

namespace bakeoff::emit {

const Framework& native_framework();

}  // namespace bakeoff::emit
