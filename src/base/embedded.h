#pragma once

// Files embedded in the binary at build time (see cmake/embed.cmake).

#include <string_view>
#include <vector>

namespace bakeoff::embedded {

struct File {
  std::string_view path;  // relative, as named in CMake
  std::string_view text;
};

}  // namespace bakeoff::embedded
