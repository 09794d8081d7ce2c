// The roofline model (Williams, Waterman, Patterson, 2009): arithmetic per second against arithmetic per
// byte, both on log scales, under the rates of memory and of the processor that were measured here. All
// contenders do the same arithmetic on the same bytes by the model's count and so stand above one another at
// one intensity, which is why layers have a row of marks of their own at the foot. Labels of roofs lie on
// their lines, at another part of each: neighbouring caches have rates so close together that labels at one
// end would cover each other.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/texts.h"
#include "report/chart_frame.h"
#include "report/charts.h"
#include "summary/limits.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr double kRooflineLeft = 66, kRooflineRight = 30, kRooflineTop = 14, kRooflineFoot = 44;  // margins
constexpr double kMarks = 54;  // of the layers, within the plot
constexpr double kLine = 15;   // between labels
constexpr int kMostMarks = 4;
constexpr double kLabelPlaces[] = {0.6, 0.4, 0.2};  // of labels along the roofs, as a share of their length

std::string rate_text(double gflops) { return significant(gflops, 3); }

// The roofs are those of float32: a row in bfloat16 has a share of another peak.
bool in_roofline(const Row& row) {
  return std::isfinite(row.gflops) && row.gflops > 0 && row.flop_use && row.group == "float32";
}

std::string distance(const Row& row) {
  const std::string limit = native_limit_of(row);
  return limit.empty() ? "" : "\n" + limit;
}

class RooflineChart {
 public:
  RooflineChart(const Summary& s, double width)
      : s_(s),
        r_(*s.roofline),
        width_(width),
        height_(width < 600 ? 340 : 440),
        bottom_(height_ - kRooflineFoot),
        x_(x_axis()),
        y_(y_axis()) {}

  std::string draw() {
    Svg svg(width_, height_, "Roofline: model arithmetic per second against arithmetic per byte");
    draw_y_axis(svg, y_, kRooflineLeft, width_ - kRooflineRight,
                [](double v) { return fmt::format("{:.4g}", v); });
    draw_x_axis(
        svg, x_, kRooflineTop, bottom_, kRooflineLeft, width_ - kRooflineRight,
        [](double v) { return fmt::format("{:.4g}", v); },
        "FLOP per byte that the ops move (log scale); upwards GFLOP/s");
    int place = 0;
    for (const Roofline::Roof& roof : r_.roofs) draw_roof(svg, roof, kLabelPlaces[place++ % 3]);
    draw_peak(svg);
    draw_native(svg);
    draw_kinds(svg);
    draw_contenders(svg);
    return std::move(svg).finish();
  }

 private:
  // Where a memory roof meets the peak.
  double kink(double bytes_per_s) const { return r_.peak_flops / bytes_per_s; }

  Axis x_axis() const {
    double low = r_.intensity(), high = low;
    for (const Roofline::Roof& roof : r_.roofs) {
      if (roof.bytes_per_s <= 0) continue;
      low = std::min(low, kink(roof.bytes_per_s) / 2);
      high = std::max(high, kink(roof.bytes_per_s));
    }
    for (const Roofline::Kind& kind : r_.kinds) {
      if (kind.flops <= 0 || kind.bytes <= 0) continue;
      low = std::min(low, kind.flops / kind.bytes);
      high = std::max(high, kind.flops / kind.bytes);
    }
    return Axis(low / 2, high * 4, kRooflineLeft, width_ - kRooflineRight, true);
  }

  Axis y_axis() const {
    double low = r_.peak_flops / 1e9;
    for (const Row& row : s_.ranked) {
      if (in_roofline(row)) low = std::min(low, row.gflops);
    }
    return Axis(low / 3, r_.peak_flops / 1e9 * 1.6, bottom_ - kMarks, kRooflineTop, true);
  }

  void draw_roof(Svg& svg, const Roofline::Roof& roof, double place) const {
    if (roof.bytes_per_s <= 0) return;
    const auto at = [&](double intensity) {
      return std::min(intensity * roof.bytes_per_s, r_.peak_flops) / 1e9;
    };
    // It starts where it enters the plot: on the left, or from below.
    const double begin = std::max(x_.low(), y_.low() * 1e9 / roof.bytes_per_s);
    if (begin >= kink(roof.bytes_per_s)) return;
    svg.begin("row", fmt::format("{}: {} GB/s measured", one_line(roof.name),
                                 significant(roof.bytes_per_s / 1e9, 3)));
    const double end = std::min(kink(roof.bytes_per_s), x_.high());
    svg.path({{x_.at(begin), y_.at(at(begin))}, {x_.at(end), y_.at(at(end))}},
             roof.name == r_.level ? "roof main" : "roof");
    // On the line, each at another part of it: the roofs of neighbours lie close together.
    const double here = begin * std::pow(end / begin, place);
    svg.text(x_.at(here), y_.at(at(here)) + 4, one_line(roof.name), "onroof", "middle");
    svg.end();
  }

  void draw_peak(Svg& svg) const {
    const double y = y_.at(r_.peak_flops / 1e9);
    svg.line(kRooflineLeft, y, width_ - kRooflineRight, y, "roof main");
    svg.text(width_ - kRooflineRight, y - 6,
             fmt::format("{} GFLOP/s, {}, {}", rate_text(r_.peak_flops / 1e9), one_line(r_.peak_of),
                         counted(r_.threads, "thread")),
             "tick", "end");
    if (r_.gemm_flops <= 0) return;
    const double gemm = y_.at(r_.gemm_flops / 1e9);
    svg.begin("row", fmt::format("best matrix product of {}: {} GFLOP/s", one_line(r_.gemm_of),
                                 rate_text(r_.gemm_flops / 1e9)));
    svg.line(kRooflineLeft, gemm, width_ - kRooflineRight, gemm, "roof dash");
    svg.text(width_ - kRooflineRight, gemm + 15,
             fmt::format("{} of a matrix product, {}", rate_text(r_.gemm_flops / 1e9), one_line(r_.gemm_of)),
             "tick", "end", (width_ - kRooflineLeft - kRooflineRight) / 2);
    svg.end();
  }

  // What the workload as one plain program reaches: the practical limit below the measured ones.
  void draw_native(Svg& svg) const {
    const Row* native = native_row(s_);
    if (native == nullptr || !in_roofline(*native)) return;
    const double y = y_.at(native->gflops);
    svg.begin("row", fmt::format("the workload as plain C++: {} GFLOP/s", rate_text(native->gflops)));
    svg.line(kRooflineLeft, y, width_ - kRooflineRight, y, "roof limit");
    svg.text(kRooflineLeft + 6, y - 5, "limit of plain C++: " + rate_text(native->gflops), "tick");
    svg.end();
  }

  // Those with arithmetic as marks at their intensity; the rest in one line of text.
  void draw_kinds(Svg& svg) const {
    const double top = bottom_ - kMarks + 12;
    std::vector<std::string> idle;
    double idle_bytes = 0, all_bytes = 0;
    int marks = 0;
    for (const Roofline::Kind& kind : r_.kinds) {
      all_bytes += kind.bytes;
      if (kind.flops <= 0 || kind.bytes <= 0) {
        idle.push_back(one_line(kind.op));
        idle_bytes += kind.bytes;
        continue;
      }
      if (marks >= kMostMarks) continue;
      const double x = x_.at(kind.flops / kind.bytes);
      const double y = top + 11 * marks++;
      svg.begin("row", fmt::format("{}: {:.3g} FLOP per byte, {:.0f}% of the arithmetic; at most {} GFLOP/s",
                                   one_line(kind.op), kind.flops / kind.bytes, 100 * kind.flops / r_.flops,
                                   rate_text(r_.attainable(kind.flops / kind.bytes) / 1e9)));
      svg.line(x, y - 8, x, bottom_, "mark");
      svg.text(x + 5, y, one_line(kind.op), "tick");
      svg.end();
    }
    if (idle_bytes <= 0) return;
    const std::string text =
        fmt::format("without products: {:.0f}% of the bytes", 100 * idle_bytes / all_bytes);
    svg.begin("row", join(idle, ", "));
    svg.text(kRooflineLeft + 6, bottom_ - 6, text, "tick");
    svg.end();
  }

  void draw_contenders(Svg& svg) const {
    const double x = x_.at(r_.intensity());
    double free = 0;  // pixels from the top: the least y that the next label may have
    std::vector<Series> shown;
    for (const Series& series : all_series(s_)) {
      if (series.ranked && in_roofline(*series.row)) shown.push_back(series);
    }
    std::stable_sort(shown.begin(), shown.end(),
                     [](const Series& a, const Series& b) { return a.row->gflops > b.row->gflops; });
    for (const Series& series : shown) {
      const double y = y_.at(series.row->gflops);
      const double label = std::max(y + 4, free);
      free = label + kLine;
      svg.begin("row",
                fmt::format("{}\n{} GFLOP/s: {:.0f}% of the peak of {}{}", series.name,
                            rate_text(series.row->gflops), 100 * *series.row->flop_use,
                            counted(series.row->threads, "thread"), distance(*series.row)),
                series.index);
      svg.circle(x, y, 5, "cross " + series.cls);
      if (width_ >= 600 && label < bottom_ - kMarks)
        svg.text(x + 10, label,
                 fmt::format("{} · {}%", series.name, significant(100 * *series.row->flop_use, 2)),
                 "lbl small", "start", width_ - kRooflineRight - x - 10);
      svg.end();
    }
  }

  const Summary& s_;
  const Roofline& r_;
  double width_, height_, bottom_;
  Axis x_, y_;
};

}  // namespace

std::string roofline_chart(const Summary& s, double width) {
  if (!s.roofline || s.roofline->peak_flops <= 0 || s.roofline->intensity() <= 0) return "";
  if (std::none_of(s.ranked.begin(), s.ranked.end(), in_roofline)) return "";
  return RooflineChart(s, width).draw();
}

}  // namespace bakeoff::report
