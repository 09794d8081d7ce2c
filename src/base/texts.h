#pragma once

// Texts: values by name, as they are recorded and shown; their parts; numbers in them.
//
// `join` is ours: fmt::join is compiled again in each unit that uses it (docs/measured/building.md).

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace bakeoff {

using Texts = std::map<std::string, std::string>;

// Without spaces, tabs and ends of lines at both ends.
inline std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? "" : text.substr(begin, end - begin + 1);
}

// With ASCII letters in lower case.
inline std::string lowered(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The parts of `text` between the places of `at`, empty ones too: "a,,b" has three, "" has one.
inline std::vector<std::string> split(std::string_view text, std::string_view at) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + at.size();
  }
  return parts;
}

// The same, each part trimmed.
inline std::vector<std::string> split_trimmed(std::string_view text, std::string_view at) {
  std::vector<std::string> parts = split(text, at);
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

// A name that others have chosen, as that of a file: letters, digits, '-', '_' and '.' stay, each other byte becomes '_',
// and 80 of them are the most.
std::string plain_name(std::string_view name);

// The lines of `text`; the newline at its end begins none.
inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines = split(text, "\n");
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

// The values from `begin` to `end` as fmt writes them, with `between` between neighbours.
template <typename Begin, typename End>
std::string join(Begin begin, const End& end, std::string_view between) {
  std::string all;
  for (Begin at = begin; at != end; ++at) {
    if (at != begin) all += between;
    if constexpr (std::is_convertible_v<decltype(*at), std::string_view>)
      all += std::string_view(*at);
    else
      all += fmt::to_string(*at);
  }
  return all;
}
template <typename Range>
std::string join(const Range& values, std::string_view between) {
  return join(std::begin(values), std::end(values), between);
}
std::string join(const std::vector<std::string>& values, std::string_view between);

// "60,000"
inline std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3 + (number < 0);) digits.insert(at -= 3, ",");
  return digits;
}

// The number that the program itself wrote as `text`. std::stod throws where that is subnormal.
inline double number_in(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

}  // namespace bakeoff
