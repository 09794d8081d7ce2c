// Curves of a study: losses over steps, rates over batch sizes, percentiles over loads. Values that span more
// than kLogFrom get a log scale, because else the lower curves lie on the axis. An interval without an upper
// end is drawn as an arrow to the top, not left out: a point without its interval would look certain.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/chart_frame.h"
#include "report/charts.h"
#include "table/numbers.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr double kLeft = 70, kRight = 24, kFoot = 44, kTop = 24;
constexpr double kLogFrom = 20;   // ratio of the greatest value to the least
constexpr size_t kMostDots = 40;  // a curve of more points is a line alone

// "0.52", "1,204", "3.1e-5".
std::string shown_value(double value) {
  if (value >= 999.5) return count(value);
  if (value == 0) return "0";
  return std::abs(value) < 0.001 ? error_size(value) : significant(value, 3);
}

// A round number as it is: "20", "0.5", "1,200".
std::string shown_tick(double value) {
  return std::abs(value) >= 999.5 ? count(value) : fmt::format("{:.4g}", value);
}

class CurveChart {
 public:
  CurveChart(const Summary& s, const Picture& picture, double width)
      : s_(s), picture_(picture), width_(width), height_(width < 600 ? 300 : 380) {
    for (const Curve& curve : picture.curves) {
      for (const Point& point : curve.points) {
        if (!drawable(point)) continue;
        least_x_ = std::min(least_x_, point.x);
        most_x_ = std::max(most_x_, point.x);
        least_ = std::min(least_, point.low);
        most_ = std::max(most_, std::isfinite(point.high) ? point.high : point.y);
      }
    }
  }

  std::string draw() {
    if (!(most_ > 0)) return "";
    const double space = picture_.ticks.empty() ? 0 : (most_x_ - least_x_) * 0.05 + 0.05;
    const Axis x = picture_.log_x ? Axis(least_x_ / 1.15, most_x_ * 1.15, kLeft, width_ - kRight, true)
                                  : Axis(picture_.ticks.empty() ? 0 : least_x_ - space, most_x_ + space,
                                         kLeft, width_ - kRight, false);
    const bool log = least_ > 0 && most_ > kLogFrom * least_;
    const Axis y(log ? least_ / 1.2 : std::min(0.0, least_), most_ + (most_ - std::min(0.0, least_)) * 0.08,
                 height_ - kFoot, kTop, log);
    Svg svg(width_, height_, fmt::format("{} against {}", picture_.y_title, picture_.x_title));
    draw_y_axis(svg, y, kLeft, width_ - kRight, shown_tick);
    svg.text(kLeft, 11, picture_.y_title, "title");
    axis_of_x(svg, x);
    const std::vector<Series> all = all_series(s_);
    for (const Curve& of : picture_.curves) {
      const auto series = std::find_if(
          all.begin(), all.end(), [&](const Series& one) { return of.contender == one.row->contender.id; });
      if (series != all.end())
        curve(svg, x, y, *series, of);
      else
        curve(svg, x, y, {.index = -1, .name = of.contender, .cls = "plain dashed", .row = nullptr}, of);
    }
    return std::move(svg).finish();
  }

 private:
  bool drawable(const Point& point) const {
    return std::isfinite(point.x) && (point.x > 0 || !picture_.log_x) && std::isfinite(point.y) &&
           std::isfinite(point.low) && !std::isnan(point.high);
  }

  void axis_of_x(Svg& svg, const Axis& x) const {
    const double bottom = height_ - kFoot, right = width_ - kRight;
    if (picture_.ticks.empty()) {
      draw_x_axis(svg, x, kTop, bottom, kLeft, right, shown_tick,
                  picture_.x_title + (picture_.log_x ? " (log scale)" : ""));
      return;
    }
    for (const auto& [at, text] : picture_.ticks) {
      svg.line(x.at(at), kTop, x.at(at), bottom, "grid");
      svg.text(x.at(at), bottom + 16, text, "tick", "middle");
    }
    svg.line(kLeft, bottom, right, bottom, "axis");
    svg.text((kLeft + right) / 2, bottom + 36, picture_.x_title, "title", "middle");
  }

  // An end that is not bounded is an arrow at the top.
  static void bounds(Svg& svg, double at, const Axis& y, const Point& point, const std::string& cls) {
    const bool open = !std::isfinite(point.high);
    const double top = y.at(open ? y.high() : point.high);
    svg.line(at, y.at(point.low), at, top, "curve " + cls);
    if (open) svg.path({{at - 5, top + 7}, {at, top}, {at + 5, top + 7}}, "arrow " + cls);
  }

  // What x reads as: its tick's text where it has one.
  std::string shown_x(double x) const {
    for (const auto& [at, text] : picture_.ticks) {
      if (at == x) return text;
    }
    return fmt::format("{} {}", picture_.x_title, shown_value(x));
  }

  void curve(Svg& svg, const Axis& x, const Axis& y, const Series& series, const Curve& of) {
    std::string title = series.name;
    Points points;
    const bool dotted = of.points.size() <= kMostDots;
    for (size_t i = 0; i < of.points.size(); ++i) {
      const Point& point = of.points[i];
      if (!drawable(point)) continue;
      points.emplace_back(x.at(point.x), y.at(point.y));
      if (!dotted && i + 1 < of.points.size()) continue;  // of many points the last one alone is told
      title += fmt::format("\n{}: {} {}{}", shown_x(point.x), shown_value(point.y), picture_.y_title,
                           of.marked_x == point.x ? ", the best" : "");
      if (point.high > point.low)
        title += std::isfinite(point.high)
                     ? fmt::format(" ({} to {})", shown_value(point.low), shown_value(point.high))
                     : fmt::format(" ({} or more, without a bound)", shown_value(point.low));
    }
    svg.begin("row", title, series.index);
    if (points.size() > 1) {
      svg.path(points, "fat");
      svg.path(points, "curve " + series.cls);
    }
    for (const Point& point : of.points) {
      if (!drawable(point) || !dotted) continue;
      const double at = x.at(point.x);
      if (point.high > point.low) bounds(svg, at, y, point, series.cls);
      svg.circle(at, y.at(point.y), of.marked_x == point.x ? 6 : 3, "cross " + series.cls);
    }
    svg.end();
  }

  const Summary& s_;
  const Picture& picture_;
  double width_, height_;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double least_x_ = kInfinity, most_x_ = -kInfinity, least_ = kInfinity, most_ = 0;  // of all points
};

}  // namespace

std::string curve_chart(const Summary& s, const Picture& picture, double width) {
  return CurveChart(s, picture, width).draw();
}

}  // namespace bakeoff::report
