#pragma once

namespace bakeoff {

// Changes with releases (CHANGELOG.md); CMakeLists.txt reads it here.
inline constexpr const char* kVersion = "0.1.0";

}  // namespace bakeoff
