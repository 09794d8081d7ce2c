#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/chart_frame.h"
#include "report/charts.h"
#include "table/numbers.h"
#include "report/search_view.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr double kLeft = 70, kRight = 24, kFoot = 44;
constexpr double kLogFrom = 20;  // ratio of the greatest to the least throughput

bool drawable(const BatchPoint& point) {
  return point.failure.empty() && point.batch > 0 && std::isfinite(point.samples_per_s) &&
         point.samples_per_s > 0 && std::isfinite(point.least) && std::isfinite(point.most);
}

class BatchChart {
 public:
  BatchChart(const Summary& s, double width) : s_(s), width_(width), height_(width < 600 ? 300 : 380) {
    for (const SearchRow& row : s.search) {
      for (const BatchPoint& point : row.points) {
        if (!drawable(point)) continue;
        least_batch_ = std::min(least_batch_, static_cast<double>(point.batch));
        most_batch_ = std::max(most_batch_, static_cast<double>(point.batch));
        least_ = std::min(least_, point.least);
        most_ = std::max(most_, point.most);
      }
    }
  }

  std::string draw() {
    if (!(most_ > 0)) return "";
    const Axis x(least_batch_ / 1.15, most_batch_ * 1.15, kLeft, width_ - kRight, true);
    const bool log = most_ > kLogFrom * least_;
    const Axis y(log ? least_ / 1.2 : 0, most_ * 1.08, height_ - kFoot, 10, log);
    Svg svg(width_, height_, "Samples per second against the batch");
    draw_y_axis(svg, y, kLeft, width_ - kRight, count);
    draw_x_axis(svg, x, 10, height_ - kFoot, kLeft, width_ - kRight, count, "rows a step (log scale)");
    for (const Series& series : all_series(s_)) {
      for (const SearchRow& row : s_.search) {
        if (row.contender == series.row->contender.id) curve(svg, x, y, series, row);
      }
    }
    return std::move(svg).finish();
  }

 private:
  static void curve(Svg& svg, const Axis& x, const Axis& y, const Series& series, const SearchRow& row) {
    std::string title = series.name;
    Points points;
    for (const BatchPoint& point : row.points) {
      if (!drawable(point)) continue;
      points.emplace_back(x.at(static_cast<double>(point.batch)), y.at(point.samples_per_s));
      title += fmt::format("\nbatch {}: {} samples/s{}", count(static_cast<double>(point.batch)),
                           count(point.samples_per_s), row.best == point.batch ? ", the best" : "");
    }
    svg.begin("row", title, series.index);
    if (points.size() > 1) {
      svg.path(points, "fat");
      svg.path(points, "curve " + series.cls);
    }
    for (const BatchPoint& point : row.points) {
      if (!drawable(point)) continue;
      const double at = x.at(static_cast<double>(point.batch));
      if (point.processes > 1) svg.line(at, y.at(point.least), at, y.at(point.most), "curve " + series.cls);
      svg.circle(at, y.at(point.samples_per_s), row.best == point.batch ? 6 : 3, "cross " + series.cls);
    }
    svg.end();
  }

  const Summary& s_;
  double width_, height_;
  double least_batch_ = 1e300, most_batch_ = 0, least_ = 1e300, most_ = 0;
};

}  // namespace

std::string batch_chart(const Summary& s, double width) { return BatchChart(s, width).draw(); }

}  // namespace bakeoff::report
