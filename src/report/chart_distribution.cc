#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/names.h"
#include "report/chart_frame.h"
#include "report/charts.h"
#include "report/density.h"
#include "report/phrases.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr int kPlaces = 90;     // of a violin's outline
constexpr double kHeight = 25;  // of a violin, pixels
constexpr double kBase = 4;     // its foot below the middle of the row; box and heats stand beneath

struct Cloud {
  std::vector<double> steps;  // ascending
  std::vector<double> heats;
  double low = 0, high = 0;  // what is drawn: 0.5% to 99.5% of the steps, and every heat
};

Cloud cloud_of(const Row& row) {
  Cloud c;
  c.steps = sorted_finite(row.step_ms);
  std::erase_if(c.steps, [](double ms) { return ms <= 0; });
  for (const double ms : row.heat_ms) {
    if (std::isfinite(ms) && ms > 0) c.heats.push_back(ms);
  }
  if (c.steps.empty() && c.heats.empty()) return c;
  c.low = c.steps.empty() ? c.heats.front() : quantile(c.steps, 0.005);
  c.high = c.steps.empty() ? c.heats.front() : quantile(c.steps, 0.995);
  for (const double ms : c.heats) {
    c.low = std::min(c.low, ms);
    c.high = std::max(c.high, ms);
  }
  return c;
}

void draw_violin(Svg& svg, const Axis& axis, const Cloud& c, double y, const std::string& cls) {
  // On the axis's own scale, so that the area is right to the eye.
  const auto scaled = [&](double ms) { return axis.log() ? std::log(ms) : ms; };
  std::vector<double> values;
  for (const double ms : c.steps) values.push_back(scaled(ms));
  const double low = scaled(c.low), high = scaled(c.high);
  const std::vector<double> heights = density(values, low, high, kPlaces);
  Points outline;
  const auto place = [&](int i) {
    const double v = low + (high - low) * i / (kPlaces - 1);
    return axis.at(axis.log() ? std::exp(v) : v);
  };
  const int n = static_cast<int>(heights.size());
  outline.emplace_back(axis.at(c.low), y);
  for (int i = 0; i < n; ++i) outline.emplace_back(place(i), y - kHeight * heights[i]);
  outline.emplace_back(axis.at(c.high), y);
  svg.path(outline, "violin " + cls, true);
}

void draw_box(Svg& svg, const Axis& axis, const Cloud& c, double y, const std::string& cls) {
  const double q1 = axis.at(quantile(c.steps, 0.25)), q3 = axis.at(quantile(c.steps, 0.75));
  svg.rect(q1, y - 2.5, std::max(q3 - q1, 1.0), 5, "box " + cls, 2);
  const double median = axis.at(quantile(c.steps, 0.5));
  svg.line(median, y - 6, median, y + 6, "median " + cls);
}

std::string title_of(const std::string& name, const Cloud& c) {
  const auto far = c.steps.end() - std::upper_bound(c.steps.begin(), c.steps.end(), c.high);
  std::string text = fmt::format("{}\n{} steps in {} heats", name, c.steps.size(), c.heats.size());
  if (c.steps.empty()) return text;
  text += fmt::format("\nmedian {} ms, middle half {} to {} ms", milliseconds(quantile(c.steps, 0.5)),
                      milliseconds(quantile(c.steps, 0.25)), milliseconds(quantile(c.steps, 0.75)));
  return text + fmt::format("\nslowest {} ms; {} beyond the right end of the violin",
                            milliseconds(c.steps.back()), far);
}

Axis step_axis(const std::vector<Cloud>& clouds, double from, double to) {
  double low = 0, high = 0;
  for (const Cloud& c : clouds) {
    if (c.high <= 0) continue;
    low = low > 0 ? std::min(low, c.low) : c.low;
    high = std::max(high, c.high);
  }
  const bool log = low > 0 && high / low > 3;
  const double space = log ? std::pow(high / low, 0.02) : 1 + (high - low) / std::max(high, 1e-9) * 0.02;
  return Axis(low / space, high * space, from, to, log);
}

}  // namespace

std::string distribution_chart(const Summary& s, double width) {
  std::vector<std::string> labels, values;
  std::vector<Cloud> clouds;
  for (const Row& row : s.ranked) {
    clouds.push_back(cloud_of(row));
    labels.push_back(label(row.contender));
    values.push_back(clouds.back().steps.empty() ? ""
                                                 : milliseconds(quantile(clouds.back().steps, 0.5)) + " ms");
  }
  if (std::all_of(clouds.begin(), clouds.end(), [](const Cloud& c) { return c.high <= 0; })) return "";
  const RowFrame f = row_frame(width, labels, values, 58);
  const Axis axis = step_axis(clouds, f.left, f.right);
  Svg svg(f.width, f.height, "Distribution of step times");
  draw_x_axis(
      svg, axis, f.top, f.bottom, f.left, f.right, [](double v) { return fmt::format("{:.4g}", v); },
      axis.log() ? "milliseconds per step (log scale)" : "milliseconds per step");
  for (const Series& series : all_series(s)) {
    if (!series.ranked) continue;
    const auto i = static_cast<size_t>(series.index);
    svg.begin("row", title_of(series.name, clouds[i]), series.index);
    svg.rect(0, f.centre(i) - 27, f.width, 54, "hit");
    draw_row_text(svg, f, i, labels[i], values[i]);
    if (clouds[i].steps.size() > 1) draw_violin(svg, axis, clouds[i], f.centre(i) + kBase, series.cls);
    if (!clouds[i].steps.empty()) draw_box(svg, axis, clouds[i], f.centre(i) + kBase + 6, series.cls);
    for (const double ms : clouds[i].heats) svg.circle(axis.at(ms), f.centre(i) + kBase + 17, 2.6, "heat");
    svg.end();
  }
  return std::move(svg).finish();
}

}  // namespace bakeoff::report
