#include "report/chart_waterfall.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "explain/words.h"
#include "report/chart_frame.h"
#include "table/numbers.h"

namespace bakeoff::report {
namespace {

namespace ex = bakeoff::explain;
using table::significant;

struct Fall {
  std::string label = {}, value = {};
  double from = 0, to = 0;  // ms of a sample
  const char* cls = "";
};

// Gains multiply, and overlap: each cause gets its part of what all changes gain together, by the logarithm of
// its own gain.
std::vector<Fall> falls_of(const ex::Explanation& e) {
  std::vector<Fall> bars;
  std::vector<const ex::Cause*> named;
  for (const ex::Cause& c : e.causes)
    if (c.finding == ex::Finding::kConfirmed && c.measured) named.push_back(&c);
  if (named.empty() || e.equal) return bars;
  const ex::Subject& s = e.subjects[0];
  const auto ms = [](double v) { return significant(v, 3) + " ms"; };
  double at = 1e3 * s.compared_s(), own = 0;
  const double whole = at;
  bars.push_back({s.name, ms(at), 0, at, "c7"});
  for (const ex::Cause* c : named) own += std::log(c->measured->value);
  const double together = std::log(e.together ? e.together->value : std::exp(own));
  for (const ex::Cause* c : named) {
    const double next = at * std::exp(-together * std::log(c->measured->value) / own);
    bars.push_back({c->suspect.rule->cause, "-" + ms(at - next), next, at, "c0"});
    at = next;
  }
  bars.push_back({"with all changes", ms(at), 0, at, "c1"});
  if (e.subjects.size() > 1 && e.gap) {
    const double other = whole / e.gap->value;
    bars.push_back({"not explained", (at >= other ? "-" : "+") + ms(std::abs(at - other)),
                    std::min(at, other), std::max(at, other), "c4"});
    bars.push_back({e.subjects[1].name, ms(other), 0, other, "c7"});
  }
  return bars;
}

}  // namespace

std::string waterfall_chart(const ex::Explanation& e, double width) {
  const std::vector<Fall> bars = falls_of(e);
  if (bars.empty()) return "";
  std::vector<std::string> labels, values;
  double most = 0;
  for (const Fall& bar : bars) {
    labels.push_back(bar.label);
    values.push_back(bar.value);
    most = std::max(most, bar.to);
  }
  constexpr double kThickness = 18;
  const RowFrame frame = row_frame(width, labels, values, kThickness);
  Svg svg(frame.width, frame.height, "Time of a " + ex::unit(e) + ", cause by cause");
  const Axis x(0, most, frame.left, frame.right, false);
  draw_x_axis(
      svg, x, frame.top, frame.bottom, frame.left, frame.right, [](double v) { return significant(v, 3); },
      "ms of a " + ex::unit(e));
  for (size_t i = 0; i < bars.size(); ++i) {
    svg.begin("row", fmt::format("{}: {}", bars[i].label, bars[i].value));
    draw_row_text(svg, frame, i, bars[i].label, bars[i].value);
    svg.rect(x.at(bars[i].from), frame.centre(i) - kThickness / 2,
             std::max(1.0, x.at(bars[i].to) - x.at(bars[i].from)), kThickness,
             std::string("bar ") + bars[i].cls, 3);
    svg.end();
  }
  return std::move(svg).finish();
}

}  // namespace bakeoff::report
