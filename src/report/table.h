#pragma once

// A table that adapts to a width: columns of low priority go first, then the wrapping column shrinks.

#include <string>
#include <vector>

namespace bakeoff::report {

enum class Ink { kPlain, kBold, kDim, kGood, kBad, kWarn };

// `text` in that ink as ANSI, or as it is.
std::string paint(const std::string& text, Ink ink, bool colour);

struct Cell {
  std::string text;
  Ink ink = Ink::kPlain;
};

struct Column {
  std::string title;
  int priority = 0;   // 0: always shown; the highest goes first
  bool left = false;  // alignment
  std::vector<Cell> cells;
  bool wraps = false;  // the one column that takes the rest of the width
};

// The columns that `width` has room for. Those without any text but "–" are left out, then those of the
// highest priority until the rest fits.
std::vector<Column> choose_columns(std::vector<Column> columns, int width);

// Priorities from here on are luxury: shown only while the wrapping column need not wrap for them.
inline constexpr int kLuxury = 20;

// Lines without trailing spaces, each at most `width` columns, under a header and a rule.
std::vector<std::string> layout(const std::vector<Column>& columns, int width, bool colour);

}  // namespace bakeoff::report
