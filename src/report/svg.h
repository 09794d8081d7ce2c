#pragma once

// Writing SVG as text: every coordinate is finite, every text escaped. Colours are classes ("c3", "ink",
// "grid") that the page's style sheet defines for light and dark.
//
//   Svg svg(640, 200, "Step time by contender");
//   svg.line(0, 10, 640, 10, "grid");
//   std::string markup = svg.finish();

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bakeoff::report {

std::string escape_markup(std::string_view text);
// The same, with what stands between two backticks as <code>.
std::string code_markup(std::string_view text);  // & < > " ', after clean()

using Points = std::vector<std::pair<double, double>>;

class Svg {
 public:
  // `label` names the picture for a screen reader, which then reads the titles of the contenders' groups.
  Svg(double width, double height, std::string_view label);

  void line(double x1, double y1, double x2, double y2, std::string_view cls);
  void rect(double x, double y, double width, double height, std::string_view cls, double radius = 0);
  void circle(double x, double y, double radius, std::string_view cls);
  void path(const Points& points, std::string_view cls, bool closed = false);
  // anchor: "start" | "middle" | "end". Text longer than `most` pixels is shortened (estimated; 0: never).
  void text(double x, double y, std::string_view text, std::string_view cls,
            std::string_view anchor = "start", double most = 0);
  // A group whose tooltip is `title`; `series` >= 0 ties it to the legend. Groups nest; close each with
  // end().
  void begin(std::string_view cls, std::string_view title = "", int series = -1);
  void end();
  std::string finish() &&;

 private:
  std::string head_, label_, out_;
};

// A coordinate: one decimal, never "nan" or "inf".
std::string coordinate(double value);

// Pixels that `text` takes at 12 px, roughly.
double text_width(std::string_view text);

// A scale from values to pixels.
class Axis {
 public:
  // Widened to nice ends when `nice`. A logarithmic axis wants low > 0; a degenerate range is widened.
  Axis(double low, double high, double from, double to, bool log);

  double at(double value) const;  // pixel; values beyond the ends land on the ends
  bool contains(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  bool log() const { return log_; }
  std::vector<double> ticks(int about) const;  // round values within the range, ascending

 private:
  std::vector<double> log_ticks(int about) const;
  double low_, high_, from_, to_;
  bool log_;
};

}  // namespace bakeoff::report
