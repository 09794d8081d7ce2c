#pragma once

// The whole script around the model.

#include <string>

#include "emit/emit.h"
#include "emit/torch/modules.h"

namespace bakeoff::emit::torch {

Result<std::string> script_text(const Request& request, const std::vector<ir::Type>& types);

}  // namespace bakeoff::emit::torch
