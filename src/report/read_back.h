#pragma once

// A finished report read back from its text, as its reader sees it: its tables and its lines. For the report's check of
// itself (self_check.h); nothing here knows what a report should say.

#include <string>
#include <string_view>
#include <vector>

namespace bakeoff::report {

// Texts of the cells as they are shown, a range behind its value. Every row has as many as there are heads.
struct ReadTable {
  std::vector<std::string> heads = {};
  std::vector<std::vector<std::string>> rows = {};
};

struct ReadBack {
  std::vector<ReadTable> tables = {};
  // Everything else, without bullets; of a page without pictures and scripts.
  std::vector<std::string> lines = {};
};

// Never fail: what is no table is lines.
ReadBack read_terminal(std::string_view text);  // without colour
ReadBack read_markdown(std::string_view text);
ReadBack read_html(std::string_view text);  // a page of ours: of what HTML permits only what templates/ hold

}  // namespace bakeoff::report
