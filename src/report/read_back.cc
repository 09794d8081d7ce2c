// Reads a report as its reader does, from the text alone, so it must not share code with what wrote it: a
// column that is shifted in the layout would be shifted here too. Tables of a terminal are found by their
// shape: a line below which a rule stands is a head, and columns are where two spaces run through all lines.
// The HTML reader knows only what templates/ hold, and takes each tag by its name.
//
// It never fails. What it cannot read as a table is lines, and self_check.cc then finds a table that is
// missing.

#include "report/read_back.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/texts.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using Lines = std::vector<std::string>;

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// Without the spaces around it and the bullet before it.
std::string bare(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::string text(line.substr(begin, line.find_last_not_of(" \r") + 1 - begin));
  for (const std::string_view bullet : {"· ", "✗ ", "- ", "### "}) {
    if (text.starts_with(bullet)) text.erase(0, bullet.size());
  }
  return text;
}

// The columns of a terminal that a line fills: a wide character is followed by an empty text.
Lines grid_of(const std::string& line) {
  Lines grid;
  for (size_t at = 0; at < line.size();) {
    size_t end = at + 1;
    while (end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) ++end;
    const std::string one = line.substr(at, end - at);
    const int width = display_width(one);
    if (width == 0 && !grid.empty()) grid.back() += one;
    if (width > 0) grid.push_back(one);
    if (width > 1) grid.emplace_back();
    at = end;
  }
  return grid;
}

bool is_rule(const std::string& line) { return line.starts_with("─") && replaced(line, "─", "").empty(); }

using Span = std::pair<size_t, size_t>;

// Two columns of a table are two spaces apart in every line, and no cell has two in a row.
std::vector<Span> spans_of(const std::vector<Lines>& grids) {
  std::vector<bool> filled;
  for (const Lines& grid : grids) {
    filled.resize(std::max(filled.size(), grid.size()));
    for (size_t i = 0; i < grid.size(); ++i) filled[i] = filled[i] || grid[i] != " ";
  }
  std::vector<Span> spans;
  for (size_t i = 0; i < filled.size(); ++i) {
    if (!filled[i]) continue;
    if (spans.empty() || i - spans.back().second >= 2)
      spans.emplace_back(i, i + 1);
    else
      spans.back().second = i + 1;
  }
  return spans;
}

Lines cells_of(const Lines& grid, const std::vector<Span>& spans) {
  Lines cells;
  for (const auto& [begin, end] : spans) {
    std::string text;
    for (size_t i = begin; i < std::min(end, grid.size()); ++i) text += grid[i];
    cells.push_back(one_line(text));
  }
  return cells;
}

// The head, and the lines below the rule. A line with a single cell goes on with the name in the row above.
ReadTable terminal_table(const Lines& lines) {
  std::vector<Lines> grids;
  for (const std::string& line : lines) grids.push_back(grid_of(line));
  const std::vector<Span> spans = spans_of(grids);
  ReadTable table{cells_of(grids.front(), spans), {}};
  for (size_t i = 1; i < grids.size(); ++i) {
    Lines cells = cells_of(grids[i], spans);
    const auto filled = std::find_if(cells.begin(), cells.end(), [](const auto& c) { return !c.empty(); });
    const auto others = std::count_if(cells.begin(), cells.end(), [](const auto& c) { return !c.empty(); });
    if (others == 1 && cells.size() > 1 && !table.rows.empty())
      table.rows.back()[static_cast<size_t>(filled - cells.begin())] += *filled;
    else
      table.rows.push_back(std::move(cells));
  }
  return table;
}

// Cells between bars that no backslash stands before; what an escape or a code span shows.
Lines markdown_cells(const std::string& line) {
  Lines cells(1);
  for (size_t at = 1; at < line.size(); ++at) {
    const bool escaped = line[at] == '\\' && at + 1 < line.size() &&
                         std::ispunct(static_cast<unsigned char>(line[at + 1])) != 0;
    if (escaped)
      cells.back() += line[++at];
    else if (line[at] == '|')
      cells.emplace_back();
    else if (line[at] != '`')
      cells.back() += line[at];
  }
  cells.pop_back();  // behind the last bar
  for (std::string& cell : cells) cell = one_line(cell);
  return cells;
}

std::string markdown_line(std::string line) {
  for (const std::string_view mark :
       {"**", "<sub>", "</sub>", "<details><summary>", "</summary>", "</details>"})
    line = replaced(std::move(line), mark, "");
  const Lines parts = markdown_cells('|' + replaced(bare(line), "|", "\\|") + '|');
  return parts.empty() ? "" : parts.front();
}

std::string unescaped(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kEntities = {
      {{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&#39;", "'"}, {"&amp;", "&"}}};
  for (const auto& [entity, sign] : kEntities) text = replaced(std::move(text), entity, sign);
  return text;
}

// Takes a page apart, tag by tag.
class Page {
 public:
  ReadBack read(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const size_t tag = std::min(text.find('<', at), text.size());
      text_ += text.substr(at, tag - at);
      if (tag == text.size()) break;
      const size_t end = std::min(text.find('>', tag), text.size() - 1);
      at = end + 1;
      const std::string name(text.substr(tag + 1, text.find_first_of(" >\n", tag) - tag - 1));
      for (const std::string_view hidden : {"style", "script", "svg", "pre", "title", "a"}) {
        const std::string close = "</" + std::string(hidden) + '>';
        if (name == hidden) at = std::min(text.find(close, at), text.size() - close.size()) + close.size();
      }
      on(name);
    }
    // Also of a table that the page does not end.
    for (ReadTable& table : out_.tables) {
      for (Lines& row : table.rows) row.resize(table.heads.size());
    }
    return std::move(out_);
  }

 private:
  void on(const std::string& name) {
    for (const std::string_view within : {"wbr", "code", "/a", "em", "i", "u"}) {
      if (name == within || name == '/' + std::string(within)) return;
    }
    if (in_cell_ && name != "/td" && name != "/th") {
      text_ += ' ';
      return;
    }
    const std::string shown = one_line(unescaped(std::exchange(text_, "")));
    if (in_cell_) {
      ReadTable& table = out_.tables.back();
      (in_body_ ? table.rows.back() : table.heads).push_back(shown);
      in_cell_ = false;
    } else if (!shown.empty()) {
      out_.lines.push_back(shown);
    }
    if (name == "table") out_.tables.emplace_back(), in_body_ = false;
    if (name == "table" || name == "/table") in_table_ = name == "table";
    if (name == "tbody") in_body_ = in_table_;
    if (name == "tr" && in_table_ && in_body_) out_.tables.back().rows.emplace_back();
    in_cell_ = in_table_ && (name == "td" || name == "th") && (!in_body_ || !out_.tables.back().rows.empty());
  }

  ReadBack out_;
  std::string text_;
  bool in_table_ = false, in_body_ = false, in_cell_ = false;
};

}  // namespace

ReadBack read_terminal(std::string_view text) {
  ReadBack out;
  const Lines lines = lines_of(text);
  for (size_t at = 0; at < lines.size(); ++at) {
    if (at + 1 == lines.size() || !is_rule(lines[at + 1])) {
      if (lines[at].find("│ ") == std::string::npos) out.lines.push_back(bare(lines[at]));
      continue;
    }
    Lines table = {lines[at]};
    for (at += 2; at < lines.size() && !lines[at].empty() && !lines[at].starts_with("  · "); ++at)
      table.push_back(lines[at]);
    out.tables.push_back(terminal_table(table));
    --at;
  }
  return out;
}

ReadBack read_markdown(std::string_view text) {
  ReadBack out;
  bool code = false, table = false;
  for (const std::string& line : lines_of(text)) {
    const bool fence = bare(line).starts_with("```");
    if (fence) code = !code;
    const bool row = !code && line.starts_with('|');
    if (row && !table) {
      out.tables.push_back({markdown_cells(line), {}});
    } else if (row && !line.starts_with("|---")) {
      out.tables.back().rows.push_back(markdown_cells(line));
      out.tables.back().rows.back().resize(out.tables.back().heads.size());
    } else if (!row && !code && !fence) {
      out.lines.push_back(markdown_line(line));
    }
    table = row;
  }
  return out;
}

ReadBack read_html(std::string_view text) { return Page().read(text); }

}  // namespace bakeoff::report
