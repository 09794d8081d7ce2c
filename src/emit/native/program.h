#pragma once

// The whole program of a workload: helpers, the struct Network with all its memory and functions, main().

#include <string>
#include <vector>

#include "emit/emit.h"

namespace bakeoff::emit::native {

std::string program_text(const Request& request, const std::vector<ir::Type>& types);

}  // namespace bakeoff::emit::native
