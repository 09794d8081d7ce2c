#pragma once

// Texts: values by name, as they are recorded and shown; what is cut off of them; numbers in them.

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace bakeoff {

using Texts = std::map<std::string, std::string>;

// Without spaces, tabs and ends of lines at both ends.
inline std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? "" : text.substr(begin, end - begin + 1);
}

// The number that the program itself wrote as `text`. std::stod throws where that is subnormal.
inline double number_in(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

}  // namespace bakeoff
