#pragma once

#include "emit/cpp.h"

namespace bakeoff::emit::libtorch {
using namespace cpp;
}  // namespace bakeoff::emit::libtorch
