#include "report/history_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"
#include "base/texts.h"
#include "report/history_formats.h"
#include "report/page.h"
#include "report/svg.h"
#include "table/numbers.h"
#include "table/quantity.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr size_t kMostAlerts = 20;

Json rounded(double value) { return number(number_in(fmt::format("{:.5g}", value))); }

Json bound(const std::optional<double>& seconds) { return seconds ? rounded(1e3 * *seconds) : Json(nullptr); }

// What the page's script draws; short names, since there are thousands of points.
Json line_data(const History& h) {
  Json out = {{"id", h.line.id},
              {"name", title_of(h.line)},
              {"about", one_line(fmt::format("{}; {}; {}", h.line.machine, h.line.measured,
                                             counted(h.line.runs, "run")))},
              {"left", h.left_out}};
  for (const char* key : {"run", "at", "ms", "low", "high", "level", "commit", "note", "marks", "shifts"})
    out[key] = Json::array();
  for (size_t i = 0; i < h.points.size(); ++i) {
    const store::LinePoint& p = h.points[i];
    out["run"].push_back(one_line(p.run));
    out["at"].push_back(one_line(p.started));
    out["ms"].push_back(rounded(1e3 * p.seconds));
    out["low"].push_back(bound(p.low));
    out["high"].push_back(bound(p.high));
    out["level"].push_back(rounded(1e3 * h.levels[i]));
    out["commit"].push_back(p.commit.empty() ? "" : one_line(p.commit.substr(0, 9)) + (p.dirty ? "+" : ""));
    out["note"].push_back(one_line(p.note));
  }
  for (const Mark& mark : h.marks)
    out["marks"].push_back({mark.at, one_line(join(mark.changes, ", ")), mark.packages});
  for (const Shift& s : h.shifts)
    out["shifts"].push_back({s.at, shift_text(h, s), s.accepted, one_line(s.note), how_to_decide(h, s)});
  return out;
}

// In a script element no text may end the element.
std::string embedded(const Json& json) {
  const std::string text = dump(json);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

View history_tile(const std::string& value, const std::string& label) {
  return {{{"tile_value", value}, {"tile_label", label}}, {}, {}};
}

View card(const History& h, size_t index) {
  const size_t open = h.open_shifts();
  View v;
  v.texts = {{"card_index", fmt::format("{}", index)},
             {"card_name", label_of(h.line)},
             {"card_machine", one_line(h.line.machine)},
             {"card_ms", h.points.empty() ? kNone : milliseconds(1e3 * h.points.back().seconds)},
             {"card_runs", counted(h.line.runs, "run")},
             {"card_state", open == 0 ? "" : counted(static_cast<int64_t>(open), "shift") + " nominated"}};
  v.flags = {{"card_open", open > 0}, {"card_drawn", !h.points.empty()}};
  return v;
}

// Cards by workload, in the order of names.
std::vector<View> groups(const std::vector<History>& histories) {
  std::vector<View> out;
  for (size_t i = 0; i < histories.size(); ++i) {
    const std::string recipe = one_line(histories[i].line.recipe);
    if (out.empty() || out.back().texts["group_name"] != recipe)
      out.push_back({{{"group_name", recipe}}, {}, {}});
    out.back().lists["cards"].push_back(card(histories[i], i));
  }
  return out;
}

std::vector<View> alerts(const std::vector<History>& histories) {
  std::vector<View> out;
  for (size_t i = 0; i < histories.size(); ++i) {
    for (const Shift& shift : histories[i].shifts) {
      if (!shift.open() || out.size() == kMostAlerts) continue;
      out.push_back({{{"alert_index", fmt::format("{}", i)},
                      {"alert_at", fmt::format("{}", shift.at)},
                      {"alert_name", title_of(histories[i].line)},
                      {"alert_text", shift_text(histories[i], shift)},
                      {"alert_command", how_to_decide(histories[i], shift)}},
                     {},
                     {}});
    }
  }
  return out;
}

}  // namespace

std::string render_history_page(const std::vector<History>& all, const std::string& where,
                                const std::string& made) {
  std::vector<History> histories;
  for (const History& history : all)
    if (!history.points.empty()) histories.push_back(history);
  std::ranges::stable_sort(histories, {}, [](const History& h) { return h.line.recipe; });
  size_t points = 0, open = 0;
  Json data = Json::array();
  for (const History& history : histories) {
    points += history.points.size();
    open += history.open_shifts();
    data.push_back(line_data(history));
  }
  View page;
  const std::string shifts = open == 0 ? "No level shift is nominated"
                                       : counted(static_cast<int64_t>(open), "level shift") +
                                             (open == 1 ? " is" : " are") + " nominated";
  page.texts = {{"headline", shifts},
                {"where", one_line(where)},
                {"made", made},
                {"state", open == 0 ? "quiet" : "to look at"},
                {"state_class", open == 0 ? "good" : "warn"},
                {"data", embedded(data)}};
  page.lists["tiles"] = {history_tile(count(static_cast<double>(histories.size())), "series"),
                         history_tile(count(static_cast<double>(points)), "points on this page"),
                         history_tile(count(static_cast<double>(open)), "nominated shifts")};
  page.lists["groups"] = groups(histories);
  page.lists["alerts"] = alerts(histories);
  page.flags = {
      {"has_alerts", open > 0}, {"more_alerts", open > kMostAlerts}, {"has_series", !histories.empty()}};
  return render_page("history.html", std::move(page));
}

}  // namespace bakeoff::report
