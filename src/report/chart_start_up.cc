#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "records/names.h"
#include "report/chart_frame.h"
#include "report/charts.h"
#include "report/phrases.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

struct Bar {
  std::array<double, 4> parts{};  // start, import, build, first step; ms
  double cold = 0;                // extra of a cold compilation cache
  double warm() const { return parts[0] + parts[1] + parts[2] + parts[3]; }
};

constexpr std::array<const char*, 4> kParts = {"process start", "import", "build", "first step"};

double positive(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

Bar bar_of(const StartUp& s) {
  Bar bar{{positive(s.start), positive(s.import), positive(s.build), positive(s.first_step)}};
  if (s.first_step_cold) bar.cold = positive(*s.first_step_cold - bar.parts[3]);
  return bar;
}

// Up to the longest warm bar; further, up to 2.5 times that, where cold starts fit.
double axis_end(const std::vector<Bar>& bars) {
  double warm = 0, cold = 0;
  for (const Bar& bar : bars) {
    warm = std::max(warm, bar.warm());
    cold = std::max(cold, bar.warm() + bar.cold);
  }
  return cold <= warm * 2.5 ? cold : warm * 1.35;
}

std::string title_of(const std::string& name, const Bar& bar) {
  std::string text = name;
  for (size_t i = 0; i < kParts.size(); ++i)
    text += fmt::format("\n{}: {}", kParts[i], duration(bar.parts[i]));
  text += "\ntogether: " + duration(bar.warm());
  if (bar.cold > 0) text += fmt::format("\nfirst step, cold cache: {}", duration(bar.parts[3] + bar.cold));
  return text;
}

void draw_cold(Svg& svg, const Axis& axis, const Bar& bar, double y) {
  const double from = axis.at(bar.warm()), end = bar.warm() + bar.cold;
  if (axis.at(std::min(end, axis.high())) - from < 1.5) return;
  const bool cut = end > axis.high();
  const double to = axis.at(end);
  if (!cut) return svg.rect(from, y - 9, to - from, 18, "cold", 2);
  svg.path({{from, y - 9}, {to - 8, y - 9}, {to, y}, {to - 8, y + 9}, {from, y + 9}}, "cold", true);
  for (const double at : {(from + to) / 2 - 3, (from + to) / 2 + 3})
    svg.line(at - 3, y + 12, at + 3, y - 12, "axis");
}

}  // namespace

std::string start_up_chart(const Summary& s, double width) {
  std::vector<std::string> labels, values;
  std::vector<Bar> bars;
  for (const Row& row : s.ranked) {
    bars.push_back(bar_of(row.start_up));
    labels.push_back(label(row.contender));
    const bool cold = bars.back().cold > 0.1 * bars.back().warm();
    values.push_back(row.at_least
                         ? ""
                         : duration(bars.back().warm()) +
                               (cold ? ", cold " + duration(bars.back().warm() + bars.back().cold) : ""));
  }
  const double end = axis_end(bars);
  if (end <= 0) return "";
  const RowFrame f = row_frame(width, labels, values, 34);
  const Axis axis(0, end, f.left, f.right, false);
  Svg svg(f.width, f.height, "Start-up split: process start, import, build, first step");
  draw_x_axis(
      svg, axis, f.top, f.bottom, f.left, f.right, [](double v) { return fmt::format("{:.4g}", v / 1e3); },
      "seconds up to the end of the first step");
  for (size_t i = 0; i < bars.size(); ++i) {
    svg.begin("row", title_of(labels[i], bars[i]), static_cast<int>(i));
    svg.rect(0, f.centre(i) - 16, f.width, 32, "hit");
    draw_row_text(svg, f, i, labels[i], values[i]);
    double done = 0;
    for (size_t part = 0; part < kParts.size(); ++part) {
      const double from = axis.at(done);
      done += bars[i].parts[part];
      svg.rect(from, f.centre(i) - 9, axis.at(done) - from, 18, fmt::format("stage{}", part));
    }
    if (bars[i].cold > 0) draw_cold(svg, axis, bars[i], f.centre(i));
    svg.end();
  }
  return std::move(svg).finish();
}

}  // namespace bakeoff::report
