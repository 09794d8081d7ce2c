#include "report/layout.h"

#include <algorithm>

#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr int kGap = 2;
constexpr int kWideName = 64;  // the same for luxury columns
constexpr int kNarrowTerminal = 120;
constexpr int kNarrowName = 19;  // the wrapping column gives up no more than this for further columns

int natural(const FilledColumn& column) {
  int width = display_width(column.column.title);
  for (const Cell& cell : column.cells) width = std::max(width, display_width(cell.text));
  return width;
}

// The ranges of a column's cells as a column of their own.
FilledColumn ranges_of(const FilledColumn& of) {
  FilledColumn out{{.title = of.column.range_title, .priority = of.column.range_priority, .left = true}, {}};
  for (const Cell& cell : of.cells)
    out.cells.push_back({cell.range.empty() ? kNone : cell.range, "", Ink::kDim});
  return out;
}

void keep_first_words(FilledColumn& column) {
  for (Cell& cell : column.cells) cell.text.resize(std::min(cell.text.find(' '), cell.text.size()));
}

// Total width when the wrapping column is `least` wide at most.
int needed(const std::vector<FilledColumn>& columns, int least) {
  int width = kGap * (static_cast<int>(columns.size()) - 1);
  for (const FilledColumn& column : columns) {
    width += column.column.name ? std::min(natural(column), least) : natural(column);
  }
  return width;
}

void drop_columns(std::vector<FilledColumn>& columns, int width) {
  while (!columns.empty()) {
    const auto worst = std::max_element(
        columns.begin(), columns.end(),
        [](const FilledColumn& a, const FilledColumn& b) { return a.column.priority < b.column.priority; });
    if (worst->column.priority == 0) return;
    if (needed(columns, worst->column.priority >= kLuxury ? kWideName : kNarrowName) <= width) return;
    columns.erase(worst);
  }
}

std::vector<int> column_widths(const std::vector<FilledColumn>& columns, int width) {
  std::vector<int> widths;
  const int rest = width - needed(columns, 0);
  for (const FilledColumn& column : columns) {
    widths.push_back(column.column.name ? std::max(std::min(natural(column), rest), 4) : natural(column));
  }
  return widths;
}

std::string aligned(const FilledColumn& column, const Cell& cell, int width, bool colour) {
  const int space = std::max(0, width - display_width(cell.text));
  const std::string text = paint(cell.text, cell.ink, colour);
  return column.column.left ? text + std::string(space, ' ') : std::string(space, ' ') + text;
}

void append_line(std::vector<std::string>& lines, std::string line, int width, bool colour) {
  const size_t end = line.find_last_not_of(' ');
  line.resize(end == std::string::npos ? 0 : end + 1);
  const std::string visible = colour ? clean(line) : line;
  lines.push_back(display_width(visible) <= width ? line : fit(visible, width));
}

struct Painter {
  const std::vector<FilledColumn>& columns;
  const std::vector<int>& widths;
  bool colour;

  // One line of the table: the cell that `pick` names of each column.
  template <typename Pick>
  std::string line(Pick pick) const {
    std::string out;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) out += std::string(kGap, ' ');
      out += aligned(columns[i], pick(i), widths[i], colour);
    }
    return out;
  }
};

void append_row(std::vector<std::string>& lines, const Painter& painter, size_t row, int width) {
  std::vector<std::string> wrapped;
  for (size_t i = 0; i < painter.columns.size(); ++i) {
    if (!painter.columns[i].column.name) continue;
    const std::string& text = painter.columns[i].cells[row].text;
    const bool fits = display_width(text) <= painter.widths[i];
    wrapped = fits ? std::vector{text} : wrap(text, painter.widths[i] - 1);
  }
  for (size_t part = 0; part < std::max<size_t>(wrapped.size(), 1); ++part) {
    const auto pick = [&](size_t i) -> Cell {
      const FilledColumn& column = painter.columns[i];
      if (column.column.name) return {(part > 0 ? " " : "") + wrapped[part], "", column.cells[row].ink};
      return part == 0 ? column.cells[row] : Cell{""};
    };
    append_line(lines, painter.line(pick), width, painter.colour);
  }
}

}  // namespace

std::string paint(const std::string& text, Ink ink, bool colour) {
  if (!colour || ink == Ink::kPlain || text.empty()) return text;
  const char* code = "0";
  switch (ink) {
    case Ink::kPlain:
      break;
    case Ink::kBold:
      code = "1";
      break;
    case Ink::kDim:
      code = "2";
      break;
    case Ink::kGood:
      code = "32";
      break;
    case Ink::kBad:
      code = "31";
      break;
    case Ink::kWarn:
      code = "33";
      break;
  }
  return std::string("\x1b[") + code + 'm' + text + "\x1b[0m";
}

std::vector<FilledColumn> choose_columns(const std::vector<FilledColumn>& columns, int width) {
  std::vector<FilledColumn> chosen;
  for (const FilledColumn& column : columns) {
    chosen.push_back(column);
    if (column.column.brief && width < kNarrowTerminal) keep_first_words(chosen.back());
    if (!column.column.range_title.empty()) chosen.push_back(ranges_of(column));
  }
  std::erase_if(chosen,
                [](const FilledColumn& column) { return column.column.priority > 0 && blank(column); });
  drop_columns(chosen, width);
  return chosen;
}

std::vector<std::string> layout(const std::vector<FilledColumn>& columns, int width, bool colour) {
  if (columns.empty() || columns.front().cells.empty()) return {};
  const std::vector<int> widths = column_widths(columns, width);
  const Painter painter{columns, widths, colour};
  std::vector<std::string> lines;
  append_line(lines, painter.line([&](size_t i) {
    return Cell{columns[i].column.title, "", Ink::kBold};
  }),
              width, colour);
  int total = kGap * (static_cast<int>(columns.size()) - 1);
  for (const int column : widths) total += column;
  std::string rule;
  for (int i = 0; i < std::min(total, width); ++i) rule += "─";
  lines.push_back(paint(rule, Ink::kDim, colour));
  for (size_t row = 0; row < columns.front().cells.size(); ++row) append_row(lines, painter, row, width);
  return lines;
}

}  // namespace bakeoff::report
