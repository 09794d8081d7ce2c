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

constexpr double kLeft = 70, kRight = 24, kFoot = 44;
constexpr double kLogFrom = 20;  // ratio of the greatest to the least throughput

bool drawable(const Point& point) {
  return point.x > 0 && std::isfinite(point.y) && point.y > 0 && std::isfinite(point.low) &&
         std::isfinite(point.high);
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
        most_ = std::max(most_, point.high);
      }
    }
  }

  std::string draw() {
    if (!(most_ > 0)) return "";
    const Axis x(least_x_ / 1.15, most_x_ * 1.15, kLeft, width_ - kRight, true);
    const bool log = most_ > kLogFrom * least_;
    const Axis y(log ? least_ / 1.2 : 0, most_ * 1.08, height_ - kFoot, 10, log);
    Svg svg(width_, height_, fmt::format("{} against {}", picture_.y_title, picture_.x_title));
    draw_y_axis(svg, y, kLeft, width_ - kRight, count);
    draw_x_axis(svg, x, 10, height_ - kFoot, kLeft, width_ - kRight, count,
                fmt::format("{} (log scale)", picture_.x_title));
    for (const Series& series : all_series(s_)) {
      for (const Curve& of : picture_.curves) {
        if (of.contender == series.row->contender.id) curve(svg, x, y, series, of);
      }
    }
    return std::move(svg).finish();
  }

 private:
  void curve(Svg& svg, const Axis& x, const Axis& y, const Series& series, const Curve& of) {
    std::string title = series.name;
    Points points;
    for (const Point& point : of.points) {
      if (!drawable(point)) continue;
      points.emplace_back(x.at(point.x), y.at(point.y));
      title += fmt::format("\n{} {}: {} {}{}", picture_.x_title, count(point.x), count(point.y),
                           picture_.y_title, of.marked_x == point.x ? ", the best" : "");
    }
    svg.begin("row", title, series.index);
    if (points.size() > 1) {
      svg.path(points, "fat");
      svg.path(points, "curve " + series.cls);
    }
    for (const Point& point : of.points) {
      if (!drawable(point)) continue;
      const double at = x.at(point.x);
      if (point.high > point.low) svg.line(at, y.at(point.low), at, y.at(point.high), "curve " + series.cls);
      svg.circle(at, y.at(point.y), of.marked_x == point.x ? 6 : 3, "cross " + series.cls);
    }
    svg.end();
  }

  const Summary& s_;
  const Picture& picture_;
  double width_, height_;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double least_x_ = kInfinity, most_x_ = 0, least_ = kInfinity, most_ = 0;  // of all points
};

}  // namespace

std::string curve_chart(const Summary& s, const Picture& picture, double width) {
  return CurveChart(s, picture, width).draw();
}

}  // namespace bakeoff::report
