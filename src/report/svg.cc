#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr double kCharacter = 7.1;      // mean width of a character at 12 px, generously
constexpr double kFarthest = 1e5;       // pixels; nothing sensible lies beyond
constexpr double kLeastRange = 1e-9;    // of an axis, relative to its ends; a narrower one is widened
constexpr size_t kLongestLabel = 2000;  // bytes; what comes then is in the table beside the picture
constexpr double kGreatest = 1e300;     // end of an axis; the difference of two is still finite

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : clean(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string code_markup(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find('`', at);
    const size_t end = begin == std::string_view::npos ? begin : text.find('`', begin + 1);
    if (end == std::string_view::npos) return out + escape_markup(text.substr(at));
    out += escape_markup(text.substr(at, begin - at)) + "<code>" +
           escape_markup(text.substr(begin + 1, end - begin - 1)) + "</code>";
    at = end + 1;
  }
  return out;
}

std::string coordinate(double value) {
  if (!std::isfinite(value)) value = 0;
  std::string text = fmt::format("{:.1f}", std::clamp(value, -kFarthest, kFarthest));
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

double text_width(std::string_view text) { return kCharacter * display_width(text); }

Svg::Svg(double width, double height, std::string_view label)
    : head_(fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\"",
                        coordinate(width), coordinate(height), coordinate(width), coordinate(height))),
      label_(label) {}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view cls) {
  out_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>", cls, coordinate(x1),
                      coordinate(y1), coordinate(x2), coordinate(y2));
}

void Svg::rect(double x, double y, double width, double height, std::string_view cls, double radius) {
  const std::string round = radius > 0 ? fmt::format(" rx=\"{}\"", coordinate(radius)) : "";
  out_ +=
      fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>", cls, coordinate(x),
                  coordinate(y), coordinate(std::max(width, 0.0)), coordinate(std::max(height, 0.0)), round);
}

void Svg::circle(double x, double y, double radius, std::string_view cls) {
  out_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>", cls, coordinate(x),
                      coordinate(y), coordinate(radius));
}

void Svg::path(const Points& points, std::string_view cls, bool closed) {
  if (points.empty()) return;
  std::string d;
  for (const auto& [x, y] : points) d += (d.empty() ? "M" : "L") + coordinate(x) + ' ' + coordinate(y);
  out_ += fmt::format("<path class=\"{}\" d=\"{}{}\"/>", cls, d, closed ? "Z" : "");
}

void Svg::text(double x, double y, std::string_view text, std::string_view cls, std::string_view anchor,
               double most) {
  std::string shown = one_line(text);
  if (most > 0 && text_width(shown) > most)
    shown = fit(shown, std::max(2, static_cast<int>(most / kCharacter)));
  const std::string place = anchor == "start" ? "" : fmt::format(" text-anchor=\"{}\"", anchor);
  out_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\"{}>{}</text>", cls, coordinate(x), coordinate(y),
                      place, escape_markup(shown));
}

void Svg::begin(std::string_view cls, std::string_view title, int series) {
  out_ += fmt::format("<g class=\"{}\"", cls);
  if (series >= 0) out_ += fmt::format(" data-series=\"{}\"", series);
  out_ += '>';
  if ((series >= 0 || cls == "row") && label_.size() < kLongestLabel) label_ += ". " + one_line(title);
  if (!title.empty()) out_ += "<title>" + escape_markup(title) + "</title>";
}

void Svg::end() { out_ += "</g>"; }

std::string Svg::finish() && {
  return fmt::format("{} aria-label=\"{}\">{}</svg>", head_, escape_markup(label_), out_);
}

Axis::Axis(double low, double high, double from, double to, bool log)
    : low_(low), high_(high), from_(from), to_(to), log_(log && low > 0) {
  if (!std::isfinite(low_)) low_ = log_ ? 1 : 0;
  low_ = std::clamp(low_, -kGreatest, kGreatest);
  high_ = std::min(high_, kGreatest);
  // A range of a few roundings holds no tick: k * step and (k + 1) * step are the same number there.
  const double least = kLeastRange * std::max(std::abs(low_), std::abs(high_));
  if (!std::isfinite(high_) || high_ <= low_ || high_ - low_ < least)
    high_ = log_ ? low_ * 2 : low_ + std::max(1.0, std::abs(low_) * 0.1);
}

double Axis::at(double value) const {
  if (std::isnan(value)) return from_;
  value = std::clamp(value, low_, high_);
  const double share =
      log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

bool Axis::contains(double value) const { return value >= low_ && value <= high_; }

std::vector<double> Axis::log_ticks(int about) const {
  static const std::vector<std::vector<double>> kSteps = {
      {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9},
      {1, 1.2, 1.5, 2, 3, 4, 5, 7},
      {1, 2, 5},
      {1, 3},
      {1}};
  for (int stride = 1;; stride *= 2) {
    for (const std::vector<double>& steps : kSteps) {
      if (stride > 1 && steps.size() > 1) continue;
      std::vector<double> ticks;
      const int first = static_cast<int>(std::floor(std::log10(low_)));
      for (int power = first; power <= std::log10(high_) + 1e-9; power += 1) {
        if ((power % stride + stride) % stride != 0) continue;
        for (const double step : steps) {
          const double tick = step * std::pow(10, power);
          if (tick >= low_ * (1 - 1e-9) && tick <= high_ * (1 + 1e-9)) ticks.push_back(tick);
        }
      }
      if (static_cast<int>(ticks.size()) <= about || stride > 400) return ticks;
    }
  }
}

std::vector<double> Axis::ticks(int about) const {
  about = std::max(about, 2);
  if (log_ && high_ / low_ > 1.5) return log_ticks(about);
  const double raw = (high_ - low_) / about;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = power * 10;
  for (const double nice : {1.0, 2.0, 2.5, 5.0}) {
    if (power * nice >= raw * 0.999) {
      step = power * nice;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::ceil(low_ / step - 1e-9);
  for (int i = 0; i <= about + 1 && (first + i) * step <= high_ + step * 1e-9; ++i)
    ticks.push_back((first + i) * step + 0.0);  // no "-0"
  return ticks;
}

}  // namespace bakeoff::report
