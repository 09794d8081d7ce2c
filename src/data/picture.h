#pragma once

// A decoded picture.

#include <cstdint>
#include <string>

namespace bakeoff {

struct Picture {
  int64_t height = 0, width = 0;
  std::string rgb;  // height * width * 3 bytes
};

// A file that claims more is not decoded.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;

}  // namespace bakeoff
