#pragma once

// A program's own text, printed in lines of any length, as a reader wants it: at most 100 columns, and with a constant
// for each shape. "native::Conv{.h = 28, .k = 32}" would stand in up to five calls of a layer, and again in each layer of
// the same shape; now kConv stands there.

#include <string>

#include "emit/namer.h"

namespace bakeoff::emit::native {

// `names`: of the program, for those of the constants.
std::string finished(const std::string& wide, Namer& names);

}  // namespace bakeoff::emit::native
