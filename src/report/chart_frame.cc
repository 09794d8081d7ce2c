#include "report/chart_frame.h"

#include <algorithm>

#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr double kAxisHeight = 44;
constexpr double kLabelLine = 19;  // above a row, where narrow

double widest(const std::vector<std::string>& texts) {
  double most = 0;
  for (const std::string& text : texts) most = std::max(most, text_width(text));
  return most;
}

// Right-aligned in `room` pixels left of x = room; in two lines where one is too short.
void draw_label(Svg& svg, double room, double y, const std::string& label) {
  if (text_width(label) <= room) return svg.text(room, y, label, "lbl", "end");
  const std::vector<std::string> lines = wrap(label, static_cast<int>(room / text_width("x")));
  if (lines.size() == 1) return svg.text(room, y, label, "lbl", "end", room);
  std::string rest;
  for (size_t i = 1; i < lines.size(); ++i) rest += lines[i];
  svg.text(room, y - 7, lines[0], "lbl", "end");
  svg.text(room, y + 7, rest, "lbl", "end", room);
}

}  // namespace

double RowFrame::centre(size_t row) const {
  return top + pitch * static_cast<double>(row) + (narrow ? (pitch + kLabelLine) / 2 : pitch / 2);
}

RowFrame row_frame(double width, const std::vector<std::string>& labels,
                   const std::vector<std::string>& values, double thickness) {
  RowFrame f;
  f.width = width;
  f.narrow = width < 600;
  f.left = f.narrow ? 10 : std::min(widest(labels), width * 0.31) + 14;
  f.right = f.narrow ? width - 14 : width - std::max(widest(values) + 18, 24.0);
  f.top = 6;
  f.pitch = thickness + (f.narrow ? kLabelLine + 6 : 0);
  f.bottom = f.top + f.pitch * static_cast<double>(labels.size()) + 4;
  f.height = f.bottom + kAxisHeight;
  return f;
}

void draw_row_text(Svg& svg, const RowFrame& f, size_t row, const std::string& label,
                   const std::string& value) {
  if (f.narrow) {
    const double y = f.top + f.pitch * static_cast<double>(row) + 14;
    svg.text(f.left, y, label, "lbl", "start", f.right - f.left - text_width(value) - 12);
    svg.text(f.right, y, value, "val", "end");
    return;
  }
  draw_label(svg, f.left - 12, f.centre(row) + 4, label);
  svg.text(f.right + 14, f.centre(row) + 4, value, "val");
}

void draw_x_axis(Svg& svg, const Axis& axis, double top, double bottom, double left, double right,
                 const Show& show, const std::string& title) {
  const std::vector<double> ticks = axis.ticks(static_cast<int>((right - left) / 62));
  double used = -1e9;
  for (const double tick : ticks) {
    const double x = axis.at(tick);
    const double half = text_width(show(tick)) / 2;
    svg.line(x, top, x, bottom, "grid");
    if (x - half < used + 6) continue;
    svg.text(x, bottom + 16, show(tick), "tick", "middle");
    used = x + half;
  }
  svg.line(left, bottom, right, bottom, "axis");
  svg.text((left + right) / 2, bottom + 36, title, "title", "middle", right - left + 60);
}

void draw_y_axis(Svg& svg, const Axis& axis, double left, double right, const Show& show) {
  for (const double tick : axis.ticks(9)) {
    svg.line(left, axis.at(tick), right, axis.at(tick), "grid");
    svg.text(left - 8, axis.at(tick) + 4, show(tick), "tick", "end");
  }
}

}  // namespace bakeoff::report
