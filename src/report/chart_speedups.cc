// Bars of factors: how many times as fast as the baseline, or with a setting.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "report/chart_frame.h"
#include "report/charts.h"
#include "report/svg.h"
#include "table/numbers.h"

namespace bakeoff::report {

using namespace table;
namespace {

// Wide enough for 1, for every factor, and for every end of an interval.
Axis speedup_axis(const std::vector<FactorBar>& bars, double from, double to) {
  double least = 1, most = 1;
  for (const FactorBar& bar : bars) {
    least = std::min(least, bar.factor.value);
    most = std::max(most, bar.factor.value);
  }
  double low = least, high = most;
  for (const FactorBar& bar : bars) {
    if (bounded_below(bar.factor)) low = std::min(low, bar.factor.low);
    if (bounded_above(bar.factor)) high = std::max(high, bar.factor.high);
  }
  const double space = std::max(std::pow(high / low, 0.04), 1.004);
  return Axis(low / space, high * space, from, to, high / low > 2);
}

// The interval over a bar; an end that is not bounded is an open arrow.
void draw_bar_interval(Svg& svg, const Axis& axis, const Estimate& e, double y) {
  const bool open_low = !bounded_below(e);
  const bool open_high = !bounded_above(e);
  const double x1 = axis.at(open_low ? axis.low() : e.low), x2 = axis.at(open_high ? axis.high() : e.high);
  svg.line(x1, y, x2, y, "whisker over");
  const auto end = [&](double x, bool open, double back) {
    if (open)
      svg.path({{x + back, y - 5}, {x, y}, {x + back, y + 5}}, "arrow over");
    else
      svg.line(x, y - 4, x, y + 4, "whisker over");
  };
  end(x1, open_low, 7);
  end(x2, open_high, -7);
}

bool drawable_bar(const FactorBar& bar) { return std::isfinite(bar.factor.value) && bar.factor.value > 0; }

}  // namespace

std::string speedup_chart(const table::Picture& picture, double width) {
  std::vector<FactorBar> bars;
  std::copy_if(picture.bars.begin(), picture.bars.end(), std::back_inserter(bars), drawable_bar);
  if (bars.empty()) return "";
  std::vector<std::string> labels, values;
  for (const FactorBar& bar : bars) {
    labels.push_back(bar.name);
    values.push_back(bar.label);
  }
  const RowFrame f = row_frame(width, labels, values, 34);
  const Axis axis = speedup_axis(bars, f.left, f.right);
  Svg svg(f.width, f.height, fmt::format("Bar chart: {}", picture.x_title));
  draw_x_axis(
      svg, axis, f.top, f.bottom, f.left, f.right, [](double v) { return fmt::format("{:.4g}", v); },
      picture.x_title + (axis.log() ? " (log scale)" : ""));
  const double one = axis.at(1);
  for (size_t i = 0; i < bars.size(); ++i) {
    const FactorBar& bar = bars[i];
    const double end = axis.at(bar.factor.value), y = f.centre(i);
    const char* cls = !bar.sure ? "bar unsure" : bar.factor.value > 1 ? "bar gain" : "bar loss";
    svg.begin("row", bar.hint);
    svg.rect(0, y - 16, f.width, 32, "hit");
    draw_row_text(svg, f, i, labels[i], values[i]);
    svg.rect(std::min(one, end), y - 8, std::abs(end - one), 16, cls, 2);
    draw_bar_interval(svg, axis, bar.factor, y);
    svg.end();
  }
  svg.line(one, f.top, one, f.bottom, "one");
  return std::move(svg).finish();
}

std::string section_chart(const Summary& summary, const table::Picture& picture, double width) {
  return picture.bars.empty() ? curve_chart(summary, picture, width) : speedup_chart(picture, width);
}

}  // namespace bakeoff::report
