#pragma once

// Values by name, as they are recorded and shown.

#include <map>
#include <string>

namespace bakeoff {

using Texts = std::map<std::string, std::string>;

}  // namespace bakeoff
