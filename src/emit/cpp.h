#pragma once

// C++ text as clang-format prints it in Google style with 100 columns.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emit/code_writer.h"

namespace bakeoff::emit::cpp {

inline constexpr size_t kColumns = 100;

// Prints one statement; where it is too long, broken after commas and aligned with the bracket they belong
// to.
void statement(CodeWriter& out, const std::string& text);

// "head(a, b) tail" as a statement.
void call(CodeWriter& out, const std::string& head, const std::vector<std::string>& arguments,
          const std::string& tail);

// A C++ braced list: "{1, 2}".
std::string braces(const std::vector<int64_t>& values);
// "3" for {3, 3}, else "{3, 5}": what torch::ExpandingArray and IntArrayRef take.
std::string per_axis(const std::vector<int64_t>& values);
// A C++ string literal: "\"conv1\"".
std::string quote(std::string_view text);
// C++ keywords, for a Namer.
const std::set<std::string>& cpp_words();

}  // namespace bakeoff::emit::cpp
