#pragma once

namespace bakeoff {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace bakeoff
