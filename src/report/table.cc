#include "report/table.h"

#include <algorithm>

#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr int kGap = 2;
constexpr int kWideName = 64;    // the same for luxury columns
constexpr int kNarrowName = 19;  // the wrapping column gives up no more than this for further columns

int natural(const Column& column) {
  int width = display_width(column.title);
  for (const Cell& cell : column.cells) width = std::max(width, display_width(cell.text));
  return width;
}

bool blank(const Column& column) {
  return std::all_of(column.cells.begin(), column.cells.end(),
                     [](const Cell& cell) { return cell.text.empty() || cell.text == kNone; });
}

// Total width when the wrapping column is `least` wide at most.
int needed(const std::vector<Column>& columns, int least) {
  int width = kGap * (static_cast<int>(columns.size()) - 1);
  for (const Column& column : columns) {
    width += column.wraps ? std::min(natural(column), least) : natural(column);
  }
  return width;
}

void drop_columns(std::vector<Column>& columns, int width) {
  while (!columns.empty()) {
    const auto worst = std::max_element(columns.begin(), columns.end(), [](const Column& a, const Column& b) {
      return a.priority < b.priority;
    });
    if (worst->priority == 0) return;
    if (needed(columns, worst->priority >= kLuxury ? kWideName : kNarrowName) <= width) return;
    columns.erase(worst);
  }
}

std::vector<int> column_widths(const std::vector<Column>& columns, int width) {
  std::vector<int> widths;
  const int rest = width - needed(columns, 0);
  for (const Column& column : columns) {
    widths.push_back(column.wraps ? std::max(std::min(natural(column), rest), 4) : natural(column));
  }
  return widths;
}

std::string aligned(const Column& column, const Cell& cell, int width, bool colour) {
  const int space = std::max(0, width - display_width(cell.text));
  const std::string text = paint(cell.text, cell.ink, colour);
  return column.left ? text + std::string(space, ' ') : std::string(space, ' ') + text;
}

void append_line(std::vector<std::string>& lines, std::string line, int width, bool colour) {
  const size_t end = line.find_last_not_of(' ');
  line.resize(end == std::string::npos ? 0 : end + 1);
  const std::string visible = colour ? clean(line) : line;
  lines.push_back(display_width(visible) <= width ? line : fit(visible, width));
}

struct Painter {
  const std::vector<Column>& columns;
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
    if (!painter.columns[i].wraps) continue;
    const std::string& text = painter.columns[i].cells[row].text;
    const bool fits = display_width(text) <= painter.widths[i];
    wrapped = fits ? std::vector{text} : wrap(text, painter.widths[i] - 1);
  }
  for (size_t part = 0; part < std::max<size_t>(wrapped.size(), 1); ++part) {
    const auto pick = [&](size_t i) -> Cell {
      const Column& column = painter.columns[i];
      if (column.wraps) return {(part > 0 ? " " : "") + wrapped[part], column.cells[row].ink};
      return part == 0 ? column.cells[row] : Cell{};
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

std::vector<Column> choose_columns(std::vector<Column> columns, int width) {
  std::erase_if(columns, [](const Column& column) { return column.priority > 0 && blank(column); });
  drop_columns(columns, width);
  return columns;
}

std::vector<std::string> layout(const std::vector<Column>& columns, int width, bool colour) {
  if (columns.empty() || columns.front().cells.empty()) return {};
  const std::vector<int> widths = column_widths(columns, width);
  const Painter painter{columns, widths, colour};
  std::vector<std::string> lines;
  append_line(lines, painter.line([&](size_t i) {
    return Cell{columns[i].title, Ink::kBold};
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
