#pragma once

// All frameworks that scripts can be written for.

#include <string_view>
#include <vector>

#include "emit/emit.h"

namespace bakeoff::emit {

const std::vector<const Framework*>& frameworks();
const Framework* find_framework(std::string_view name);  // null if unknown

}  // namespace bakeoff::emit
