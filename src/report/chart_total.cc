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

constexpr int kPoints = 64;
constexpr double kTotalLeft = 66, kTotalRight = 30;  // margins

bool drawable(const Row& row) {
  return !row.at_least && std::isfinite(row.ms_per_step.value) && row.ms_per_step.value > 0 &&
         std::isfinite(row.start_up.total());
}

// Milliseconds from the start of the process to the end of step n. The first step is part of the start-up.
double total(const Row& row, double n) { return row.start_up.total() + (n - 1) * row.ms_per_step.value; }

bool crosses(const Row& row, double last) {
  return row.break_even_step && std::isfinite(*row.break_even_step) && *row.break_even_step >= 1 &&
         *row.break_even_step <= last;
}

// A power of ten that shows every crossing and the steady state.
double last_step(const Summary& s) {
  double last = 10000;
  for (const Row& row : s.ranked) {
    if (crosses(row, 1e8))
      last = std::max(last, std::pow(10, std::ceil(std::log10(*row.break_even_step * 3))));
  }
  return last;
}

std::string steps_text(double n) { return n < 1e6 ? count(n) : fmt::format("{:.0e}", n); }

std::string seconds_text(double s) { return s < 1 ? fmt::format("{:.3g} s", s) : count(s) + " s"; }

class TotalChart {
 public:
  TotalChart(const Summary& s, double width, bool relative)
      : s_(s),
        leader_(s.ranked.front()),
        relative_(relative),
        width_(width),
        height_(width < 600 ? 300 : 380),
        last_(last_step(s)),
        x_(1, last_, kTotalLeft, width - kTotalRight, true),
        y_(y_axis()) {}

  std::string draw() {
    Svg svg(width_, height_,
            relative_ ? "Total time relative to the leader against steps" : "Total time against steps");
    draw_y_axis(svg, y_, kTotalLeft, width_ - kTotalRight,
                [this](double v) { return relative_ ? fmt::format("{:.3g}×", v) : seconds_text(v); });
    draw_x_axis(svg, x_, 10, height_ - 44, kTotalLeft, width_ - kTotalRight, steps_text,
                "training steps (log scale)");
    for (const Series& series : all_series(s_)) {
      if (series.ranked && drawable(*series.row)) curve(svg, series);
    }
    return std::move(svg).finish();
  }

 private:
  double value(const Row& row, double n) const {
    return relative_ ? total(row, n) / total(leader_, n) : total(row, n) / 1e3;
  }

  Axis y_axis() const {
    double low = std::numeric_limits<double>::infinity(), high = 0;
    for (const Row& row : s_.ranked) {
      if (!drawable(row)) continue;
      for (const double n : {1.0, std::sqrt(last_), last_}) {
        low = std::min(low, value(row, n));
        high = std::max(high, value(row, n));
      }
    }
    return Axis(low / 1.08, high * 1.08, height_ - 44, 10, true);
  }

  void curve(Svg& svg, const Series& series) const {
    const Row& row = *series.row;
    std::string title = fmt::format("{}\nstart-up {}, then {} ms per step", series.name,
                                    duration(row.start_up.total()), milliseconds(row.ms_per_step.value));
    const bool dot = &row != &leader_ && crosses(row, last_);
    if (dot)
      title += fmt::format("\nbreak-even with the leader at step {}", count(std::ceil(*row.break_even_step)));
    svg.begin("row", title, series.index);
    Points points;
    for (int i = 0; i < kPoints; ++i) {
      const double n = std::pow(last_, static_cast<double>(i) / (kPoints - 1));
      points.emplace_back(x_.at(n), y_.at(value(row, n)));
    }
    svg.path(points, "fat");
    svg.path(points, "curve " + series.cls);
    if (dot)
      svg.circle(x_.at(*row.break_even_step), y_.at(value(row, *row.break_even_step)), 5,
                 "cross " + series.cls);
    svg.end();
  }

  const Summary& s_;
  const Row& leader_;
  bool relative_;
  double width_, height_, last_;
  Axis x_, y_;
};

}  // namespace

std::string total_time_chart(const Summary& s, double width, bool relative) {
  if (s.ranked.size() < (relative ? 2U : 1U) || !drawable(s.ranked.front())) return "";
  return TotalChart(s, width, relative).draw();
}

}  // namespace bakeoff::report
