// Two charts of the same losses. In the first all lines lie on one another, as the proof demands; the
// second shows how far each is from the referee's, relative and logarithmic. An equal loss has no place on
// a logarithmic axis, so it stands at the foot, "equal". The bands are what the proof allowed at each step.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/chart_frame.h"
#include "report/charts.h"
#include "report/density.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr double kLossLeft = 70;

using Height = std::function<double(double)>;  // pixel of a value

struct Plot {
  double width, height, right, bottom;
  Axis x;
};

Plot plot(double width, size_t steps) {
  const double height = width < 600 ? 260 : 300;
  return {width, height, width - 16, height - 44,
          Axis(0, static_cast<double>(std::max<size_t>(steps, 2) - 1), kLossLeft, width - 16, false)};
}

std::vector<Series> with_losses(const Summary& s) {
  std::vector<Series> out;
  for (Series& series : all_series(s)) {
    if (series.row->proof && !series.row->proof->losses.empty()) out.push_back(std::move(series));
  }
  return out;
}

size_t longest(const Summary& s) {
  size_t steps = s.manifest.referee_losses.size();
  for (const Series& series : with_losses(s)) steps = std::max(steps, series.row->proof->losses.size());
  return steps;
}

// Of the referee and all contenders; ascending, finite.
std::vector<double> every_loss(const Summary& s) {
  std::vector<double> values = s.manifest.referee_losses;
  for (const Series& series : with_losses(s)) {
    values.insert(values.end(), series.row->proof->losses.begin(), series.row->proof->losses.end());
  }
  return sorted_finite(values);
}

std::string step_text(double step) { return std::floor(step) == step ? fmt::format("{:.0f}", step) : ""; }

// A line through the points of `values`, broken where one is not finite, with a dot at each.
void draw_line(Svg& svg, const Plot& p, const Height& y, const std::vector<double>& values,
               const std::string& cls, const std::string& dots) {
  Points run, all;
  const auto flush = [&] {
    if (run.size() > 1) svg.path(run, cls);
    run.clear();
  };
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      flush();
      continue;
    }
    run.emplace_back(p.x.at(static_cast<double>(i)), y(values[i]));
    all.push_back(run.back());
  }
  flush();
  if (dots.empty()) return;
  for (const auto& [px, py] : all) svg.circle(px, py, 3, dots);
}

double relative_error(double loss, double truth) {
  return std::abs(loss - truth) / std::max(std::abs(truth), 1e-300);
}

std::vector<double> errors(const Summary& s, const Row& row) {
  std::vector<double> out;
  const size_t n = std::min(row.proof->losses.size(), s.manifest.referee_losses.size());
  for (size_t i = 0; i < n; ++i)
    out.push_back(relative_error(row.proof->losses[i], s.manifest.referee_losses[i]));
  return out;
}

// What was allowed for each of the row's losses; of a record that lacks it nothing.
std::vector<double> limits(const Row& row) {
  const size_t n = std::min(row.proof->losses.size(), row.proof->loss_limits.size());
  return {row.proof->loss_limits.begin(), row.proof->loss_limits.begin() + static_cast<std::ptrdiff_t>(n)};
}

// A contender's own tolerance: everything below its limit, where others have another; once for those who share it.
struct Band {
  std::vector<double> limits;
  std::vector<Series> of;
};
std::vector<Band> bands(const std::vector<Series>& all) {
  std::vector<Band> out;
  for (const Series& series : all) {
    const std::vector<double> own = limits(*series.row);
    if (own.empty()) continue;
    const auto known =
        std::find_if(out.begin(), out.end(), [&](const Band& band) { return band.limits == own; });
    if (known != out.end())
      known->of.push_back(series);
    else
      out.push_back({own, {series}});
  }
  return out;
}

// Down to the least difference that is not 0, up to the largest or the tolerance.
Axis error_axis(const Summary& s, double foot) {
  double least = 1e-8, most = 0;
  for (const Series& series : with_losses(s)) {
    for (const double limit : limits(*series.row)) most = std::max(most, limit);
    for (const double e : errors(s, *series.row)) {
      if (!std::isfinite(e)) continue;
      most = std::max(most, e);
      if (e > 0) least = std::min(least, e);
    }
  }
  least = std::max(least, 1e-18);
  return Axis(least / 3, std::max(most, least * 10) * 3, foot, 10, true);
}

// Each band down to the foot of the plot, with its limit at the end.
void draw_bands(Svg& svg, const Plot& p, const Axis& y, const std::vector<Band>& all) {
  for (const Band& band : all) {
    Points outline;
    for (size_t i = 0; i < band.limits.size(); ++i)
      outline.emplace_back(p.x.at(static_cast<double>(i)), y.at(band.limits[i]));
    const auto [end_x, end_y] = outline.back();
    const bool shared = band.of.size() > 1 || all.size() == 1;
    const std::string whose =
        all.size() == 1
            ? "every contender"
            : fmt::format("{}{}", band.of.front().name,
                          band.of.size() > 1 ? fmt::format(" and {} others", band.of.size() - 1) : "");
    svg.begin("row",
              fmt::format("allowed for {}: {} at the first step, {} at the last", whose,
                          error_size(band.limits.front()), error_size(band.limits.back())),
              shared ? -1 : band.of.front().index);
    if (outline.size() > 1)
      svg.path(outline, "curve allowed " + (shared ? std::string("plain") : band.of.front().cls));
    outline.emplace_back(end_x, p.bottom);
    outline.emplace_back(outline.front().first, p.bottom);
    svg.path(outline, "band", true);
    svg.text(end_x - 4, end_y - 6, "allowed" + (all.size() == 1 ? std::string() : ": " + whose), "tick",
             "end");
    svg.end();
  }
}

}  // namespace

std::string loss_chart(const Summary& s, double width) {
  const std::vector<Series> all = with_losses(s);
  const std::vector<double> values = every_loss(s);
  if (all.empty() || values.empty()) return "";
  const Plot p = plot(width, longest(s));
  const double space = std::max((values.back() - values.front()) * 0.06, 1e-6);
  const Axis y(values.front() - space, values.back() + space, p.bottom, 10, false);
  const Height height = [&](double loss) { return y.at(loss); };
  Svg svg(p.width, p.height, "Losses of the first steps");
  draw_y_axis(svg, y, kLossLeft, p.right, [](double v) { return fmt::format("{:.4g}", v); });
  draw_x_axis(svg, p.x, 10, p.bottom, kLossLeft, p.right, step_text, "training step");
  svg.begin("", "referee, float64");
  draw_line(svg, p, height, s.manifest.referee_losses, "referee", "");
  svg.end();
  for (const Series& series : all) {
    svg.begin("row", series.name, series.index);
    draw_line(svg, p, height, series.row->proof->losses, "curve " + series.cls, "bead " + series.cls);
    svg.end();
  }
  return std::move(svg).finish();
}

std::string loss_error_chart(const Summary& s, double width) {
  const std::vector<Series> all = with_losses(s);
  if (all.empty() || s.manifest.referee_losses.empty()) return "";
  const Plot p = plot(width, longest(s));
  const Axis y = error_axis(s, p.bottom - 22);
  Svg svg(p.width, p.height, "Relative difference of the losses from the float64 referee");
  draw_y_axis(svg, y, kLossLeft, p.right, [](double v) { return error_size(v); });
  draw_x_axis(svg, p.x, 10, p.bottom, kLossLeft, p.right, step_text, "training step");
  svg.text(kLossLeft - 8, p.bottom - 4, "equal", "tick", "end");
  draw_bands(svg, p, y, bands(all));
  const Height height = [&](double e) { return e > 0 ? y.at(e) : p.bottom - 8; };
  for (const Series& series : all) {
    const std::vector<double> e = errors(s, *series.row);
    double worst = 0;
    for (const double x : e) worst = std::isfinite(x) ? std::max(worst, x) : worst;
    svg.begin("row", fmt::format("{}\nlargest difference {}", series.name, error_size(worst)), series.index);
    draw_line(svg, p, height, e, "curve " + series.cls, "bead " + series.cls);
    svg.end();
  }
  return std::move(svg).finish();
}

}  // namespace bakeoff::report
