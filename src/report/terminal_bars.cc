#include "report/terminal_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/layout.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr int kSpace = 2, kLeastBar = 6, kMostBar = 40, kFairBar = 12, kLeastName = 12, kMostName = 34;

Ink ink_of(Finish finish) {
  switch (finish) {
    case Finish::kFastest:
    case Finish::kEqual:
      return Ink::kGood;
    case Finish::kMayBe:
      return Ink::kWarn;
    case Finish::kNoResult:
      return Ink::kBad;
    case Finish::kProbably:
    case Finish::kSlower:
      break;
  }
  return Ink::kPlain;
}

// "████████▌", in eighths of a column.
std::string bar(double share, int width) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  std::string out;
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  return out + kEighths[eighths % 8];
}

struct Line {
  std::string name, rate, against, word;
};

Line line_of(const FirstRow& row, bool with_range) {
  Line out{row.name.whole(), row.rate ? count(row.rate->value) : kNone, row.against, row.word};
  if (with_range && !row.range.empty()) out.against += fmt::format(" ({})", row.range);
  if (!with_range && row.ratio > 0)
    out.against = fmt::format("{}{}x", row.row->at_least ? "≥ " : "", times(row.ratio));
  if (!row.group.empty()) out.name += " · " + row.group;
  return out;
}

int widest(const std::vector<Line>& lines, std::string Line::*part) {
  int width = 0;
  for (const Line& line : lines) width = std::max(width, display_width(line.*part));
  return width;
}

// Of the parts of a line; 0: there is no room for it.
struct Widths {
  int name = 0, rate = 0, bar = 0, against = 0, word = 0;
};

Widths widths_of(const std::vector<Line>& lines, int width) {
  Widths w{.rate = std::max(widest(lines, &Line::rate), 9),
           .against = std::max(widest(lines, &Line::against), 9),
           .word = widest(lines, &Line::word)};
  const auto rest = [&] {
    return width - w.rate - w.word - (w.against > 0 ? w.against + kSpace : 0) - 2 * kSpace;
  };
  if (rest() < kLeastName) w.against = 0;
  w.name = std::max(std::min({widest(lines, &Line::name), kMostName, rest()}), 4);
  const int room = rest() - w.name - kSpace;
  w.bar = room < kLeastBar ? 0 : std::min(room, kMostBar);
  return w;
}

std::vector<Line> lines_of(const FirstScreen& screen, bool with_range) {
  std::vector<Line> lines;
  for (const FirstRow& row : screen.rows) {
    if (row.finish != Finish::kNoResult) lines.push_back(line_of(row, with_range));
  }
  return lines;
}

std::string heading(const Widths& w, bool wide) {
  std::string text = pad_right("", w.name + kSpace) + pad_left("samples/s", w.rate);
  if (wide || w.against == 0) return text;
  return text + pad_right("", w.bar > 0 ? w.bar + 2 * kSpace : kSpace) + "times as long";
}

void append_timed(std::vector<std::string>& out, const FirstScreen& screen, const FirstRow& row,
                  const Line& line, const Widths& w, bool colour) {
  const std::vector<std::string> names = wrap(line.name, w.name);
  std::string text = pad_right(names.front(), w.name) + "  " + pad_left(line.rate, w.rate) + "  ";
  const double share = row.rate && screen.most > 0 ? row.rate->value / screen.most : 0;
  if (w.bar > 0) text += paint(pad_right(bar(share, w.bar), w.bar), ink_of(row.finish), colour) + "  ";
  if (w.against > 0) text += pad_right(line.against, w.against) + "  ";
  out.push_back(text + paint(line.word, ink_of(row.finish), colour));
  for (size_t part = 1; part < names.size(); ++part) out.push_back(" " + fit(names[part], w.name));
}

}  // namespace

std::vector<std::string> bars(const FirstScreen& screen, int width, bool colour) {
  std::vector<Line> timed = lines_of(screen, true);
  Widths widths = widths_of(timed, width);
  const bool wide = widths.bar >= kFairBar;  // otherwise the bars need the room of the ranges
  if (!wide) timed = lines_of(screen, false), widths = widths_of(timed, width);
  std::vector<std::string> out;
  if (!timed.empty()) out.push_back(paint(heading(widths, wide), Ink::kDim, colour));
  size_t next = 0;
  for (const FirstRow& row : screen.rows) {
    if (row.finish != Finish::kNoResult) {
      append_timed(out, screen, row, timed[next++], widths, colour);
      continue;
    }
    const std::string text = fmt::format("{}: {}: {}", row.name.whole(), row.word, row.against);
    std::string indent;
    for (const std::string& part : wrap(text, width - 2)) {
      out.push_back(paint(indent + part, Ink::kBad, colour));
      indent = "  ";
    }
  }
  return out;
}

}  // namespace bakeoff::report
