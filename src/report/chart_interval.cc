#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/names.h"
#include "report/chart_frame.h"
#include "report/charts.h"
#include "report/phrases.h"
#include "report/ranking.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

// Wide enough for every value and every end of an interval.
Axis ratio_axis(const Summary& s, double from, double to) {
  double least = 1, most = 1;
  for (const Row& row : s.ranked) {
    if (!(row.ratio.value > 0) || !std::isfinite(row.ratio.value)) continue;
    least = std::min(least, row.ratio.value);
    most = std::max(most, row.ratio.value);
  }
  double low = least / (1 + 2 * s.margin), high = most * (1 + 2 * s.margin);
  for (const Row& row : s.ranked) {
    if (bounded_below(row.ratio)) low = std::min(low, row.ratio.low);
    if (bounded_above(row.ratio)) high = std::max(high, row.ratio.high);
  }
  const double space = std::pow(high / low, 0.03);
  return Axis(low / space, high * space, from, to, high / low > 2);
}

void draw_end(Svg& svg, double x, double y, bool open, bool right, const std::string& cls) {
  if (!open) return svg.line(x, y - 5, x, y + 5, "whisker " + cls);
  const double back = right ? -7 : 7;
  svg.path({{x + back, y - 5}, {x, y}, {x + back, y + 5}}, "arrow " + cls);
}

void draw_interval(Svg& svg, const Axis& axis, const Estimate& e, double y, const std::string& cls) {
  const bool open_low = !bounded_below(e);
  const bool open_high = !bounded_above(e);
  const double x1 = axis.at(open_low ? axis.low() : e.low), x2 = axis.at(open_high ? axis.high() : e.high);
  svg.line(x1, y, x2, y, "whisker " + cls);
  draw_end(svg, x1, y, open_low, false, cls);
  draw_end(svg, x2, y, open_high, true, cls);
}

std::string title_of(const Summary& s, const Row& row) {
  const Cell ratio = ratio_cell(s, row), ms = step_time_cell(row);
  return fmt::format("{}\nratio to the leader {} {}\n{} ms per step {}\nrank {}, {}", label(row.contender),
                     ratio.text, ratio.range, ms.text, ms.range, rank_range(row), verdict_text(row));
}

}  // namespace

std::string interval_chart(const Summary& s, double width) {
  if (s.ranked.size() < 2) return "";
  std::vector<std::string> labels, values;
  for (const Row& row : s.ranked) {
    const Cell ratio = ratio_cell(s, row);
    labels.push_back(label(row.contender));
    values.push_back(&row == &leader_of(s, row) ? "leader"
                                                : ratio.text + (row.at_least ? "" : "  " + ratio.range));
  }
  const RowFrame f = row_frame(width, labels, values, 34);
  const Axis axis = ratio_axis(s, f.left, f.right);
  Svg svg(f.width, f.height, "Step-time ratio to the leader with confidence intervals");
  const double band_low = axis.at(1 / (1 + s.margin)), band_high = axis.at(1 + s.margin);
  svg.begin("", fmt::format("margin: within {} of the leader", percent(s.margin)));
  svg.rect(band_low, f.top, band_high - band_low, f.bottom - f.top, "band");
  svg.end();
  draw_x_axis(
      svg, axis, f.top, f.bottom, f.left, f.right, [](double v) { return fmt::format("{:.4g}", v); },
      axis.log() ? "step time relative to the leader (log scale)" : "step time relative to the leader");
  svg.line(axis.at(1), f.top, axis.at(1), f.bottom, "one");
  const std::vector<Series> series = all_series(s);
  for (size_t i = 0; i < s.ranked.size(); ++i) {
    const Row& row = s.ranked[i];
    svg.begin("row", title_of(s, row), static_cast<int>(i));
    svg.rect(0, f.centre(i) - 16, f.width, 32, "hit");
    draw_row_text(svg, f, i, labels[i], values[i]);
    if (&row != &leader_of(s, row)) draw_interval(svg, axis, row.ratio, f.centre(i), series[i].cls);
    if (!row.at_least) svg.circle(axis.at(row.ratio.value), f.centre(i), 4.5, "dot " + series[i].cls);
    svg.end();
  }
  return std::move(svg).finish();
}

}  // namespace bakeoff::report
