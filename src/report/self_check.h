#pragma once

// One figure has one source: the formats of a report read back from their texts and held against each other.
//
//   const Formats formats = render_formats(summary);
//   const SelfCheck check = self_check(summary, formats);  // check.findings is empty where all of them agree
//
// A CSV's field has to be the number of the JSON that its column stands for, to the last digit. A cell of a table has
// to read as its column shows that number. A clause of a sentence that several formats have must hold the same numbers
// in all of them; and each of its figures with a unit of time, memory, share, ratio or rate must be a number of the
// JSON, within the rounding that it shows.
//
// What a changed digit leaves unseen: in a cell nothing. In a sentence that one format alone holds, or whose names the
// page replaces, a figure that by chance is another number of the same report: of shares and ratios with two digits
// that is usual, of times and sizes rare, as their unit has to fit too. Pictures are not read; they are drawn from the
// numbers that the tables show.

#include <string>
#include <utility>
#include <vector>

#include "summary/summary.h"

namespace bakeoff::report {

struct Formats {
  std::string csv = {}, json = {}, markdown = {}, html = {};
  // By width, without colour. Of sentences only those of the last one are read.
  std::vector<std::pair<int, std::string>> terminals = {};
  std::string page = "HTML";  // how findings call the page
};
Formats render_formats(const Summary& summary);

struct SelfCheck {
  size_t figures = 0;                      // that were compared
  std::vector<std::string> findings = {};  // one line each; none: all agree
};
SelfCheck self_check(const Summary& summary, const Formats& formats);

inline constexpr int kFormats = 5;  // terminal, Markdown, HTML, CSV, JSON

}  // namespace bakeoff::report
