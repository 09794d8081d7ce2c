#include "report/latency_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/cells.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::string mode_name(const LatencyRow& row) {
  return row.single_stream() ? "single stream" : fmt::format("{:g} requests/s", row.rate);
}

std::string state_name(LatencyState state) {
  switch (state) {
    case LatencyState::kSteady:
      return "steady";
    case LatencyState::kGrowing:
      return "queue grows";
    case LatencyState::kUnsettled:
      return "not steady";
    case LatencyState::kFailed:
      break;
  }
  return "failed";
}

// Shares that any row has, ascending.
std::vector<double> shares(const Summary& s) {
  std::set<double> all;
  for (const LatencyRow& row : s.latency) {
    for (const auto& percentile : row.percentiles) all.insert(percentile.p);
  }
  return {all.begin(), all.end()};
}

LatencyCell cell(const LatencyRow& row, double share) {
  LatencyCell out{percentile_name(share), kNone, kNone, kNone};
  for (size_t i = 0; i < row.percentiles.size(); ++i) {
    const auto& found = row.percentiles[i];
    if (found.p != share) continue;
    out.value = milliseconds(found.value);
    out.bounds = interval({found.value, found.bounds.low, found.bounds.high}, milliseconds);
    if (row.processes > 1 && i < row.by_process.size()) {
      out.range =
          fmt::format("{} to {}", milliseconds(row.by_process[i].low), milliseconds(row.by_process[i].high));
    }
  }
  return out;
}

// "single_stream", "50_per_s".
std::string mode_key(double rate) { return rate == 0 ? "single_stream" : fmt::format("{:g}_per_s", rate); }

}  // namespace

std::string percentile_name(double share) { return fmt::format("p{:.7g}", 100 * share); }

std::vector<LatencyCells> latency_cells(const Summary& s) {
  const std::vector<double> all = shares(s);
  std::vector<LatencyCells> out;
  for (const LatencyRow& row : s.latency) {
    const bool steady = row.state == LatencyState::kSteady;
    LatencyCells c;
    c.mode = mode_name(row);
    c.name = one_line(row.contender);
    for (const double share : all) c.percentiles.push_back(cell(row, share));
    c.mean = steady ? milliseconds(row.mean_ms) : kNone;
    c.service = row.service_ms > 0 ? milliseconds(row.service_ms) : kNone;
    c.load = row.load > 0 && std::isfinite(row.load) ? significant(100 * row.load, 2) + "%" : kNone;
    c.requests = row.requests > 0 ? count(static_cast<double>(row.requests)) : kNone;
    c.state = state_name(row.state);
    c.note = one_line(row.note);
    out.push_back(std::move(c));
  }
  return out;
}

std::string latency_legend(const Summary& s) {
  return fmt::format(
      "Milliseconds from a request's arrival to its answer; a request is one batch of {}. Single stream: the "
      "next "
      "one arrives when the last is answered, so nothing ever waits. At a rate: they arrive at random and "
      "wait for "
      "nobody, and latency counts from the intended moment. Each bound holds with {} on its own, whatever "
      "the "
      "shape; requests that queue are counted as fewer. Load: share of its capacity that is asked for.",
      count(static_cast<double>(s.batch)), percent(s.latency_level));
}

std::vector<Column> latency_columns(const Summary& s) {
  const std::vector<LatencyCells> rows = latency_cells(s);
  std::vector<Column> columns;
  const auto add = [&](std::string title, int priority, bool left, auto text, Ink ink = Ink::kPlain) {
    Column column{std::move(title), priority, left, {}};
    for (const LatencyCells& row : rows) column.cells.push_back({text(row), ink});
    columns.push_back(std::move(column));
  };
  add("requests", 0, true, [](const LatencyCells& r) { return r.mode; });
  add("contender", 0, true, [](const LatencyCells& r) { return r.name; });
  columns.back().wraps = true;
  const size_t count = rows.empty() ? 0 : rows.front().percentiles.size();
  for (size_t i = 0; i < count; ++i) {
    const int rank = static_cast<int>(count - i);
    const bool kept = i == 0 || i + 1 == count;
    add(rows.front().percentiles[i].title, kept ? 0 : rank, false,
        [i](const LatencyCells& r) { return r.percentiles[i].value; });
    add(
        "bounds", 10 + rank, true, [i](const LatencyCells& r) { return r.percentiles[i].bounds; }, Ink::kDim);
  }
  add("load", 2, false, [](const LatencyCells& r) { return r.load; });
  add("queue", 3, true, [](const LatencyCells& r) { return r.state; });
  add(
      "answer", 9, false, [](const LatencyCells& r) { return r.service; }, Ink::kDim);
  return columns;
}

std::vector<std::pair<std::string, std::string>> latency_fields(const Summary& s,
                                                                const std::string& contender) {
  std::vector<double> rates;
  for (const LatencyRow& row : s.latency) {
    if (std::find(rates.begin(), rates.end(), row.rate) == rates.end()) rates.push_back(row.rate);
  }
  std::vector<std::pair<std::string, std::string>> fields;
  for (const double rate : rates) {
    const auto row = std::find_if(s.latency.begin(), s.latency.end(), [&](const LatencyRow& r) {
      return r.contender == contender && r.rate == rate;
    });
    const bool known = row != s.latency.end();
    const std::string key = "latency_" + mode_key(rate);
    fields.emplace_back(key + "_queue", known ? state_name(row->state) : "");
    fields.emplace_back(key + "_load", known && !row->single_stream() ? plain(row->load) : "");
    for (const double share : shares(s)) {
      const std::string name = fmt::format("{}_{}_ms", key, percentile_name(share));
      stats::Percentile found{.value = NAN};
      for (const auto& one : known ? row->percentiles : std::vector<stats::Percentile>{}) {
        if (one.p == share) found = one;
      }
      fields.emplace_back(name, plain(found.value));
      fields.emplace_back(name + "_low", plain(found.bounds.low));
      fields.emplace_back(name + "_high", plain(found.bounds.high));
    }
  }
  return fields;
}

void add_latency(const Summary& s, View& page) {
  page.flags["has_latency"] = !s.latency.empty();
  if (s.latency.empty()) return;
  page.texts["latency_legend"] = latency_legend(s);
  for (const double share : shares(s))
    page.lists["latency_columns"].push_back({{{"latency_title", percentile_name(share)}}, {}, {}});
  for (const LatencyCells& c : latency_cells(s)) {
    View v;
    v.texts = {{"latency_mode", c.mode},   {"latency_name", c.name},
               {"latency_load", c.load},   {"latency_service", c.service},
               {"latency_state", c.state}, {"latency_requests", c.requests},
               {"latency_note", c.note},   {"latency_class", c.state == "steady" ? "good" : "bad"}};
    v.flags["has_latency_note"] = !c.note.empty();
    v.texts["latency_span"] = std::to_string(6 + c.percentiles.size());
    for (const LatencyCell& one : c.percentiles) {
      View p;
      p.texts = {{"latency_of", one.title},
                 {"latency_value", one.value},
                 {"latency_bounds", one.bounds == kNone ? "" : one.bounds},
                 {"latency_range", one.range == kNone ? "" : "processes " + one.range}};
      v.lists["latency_cells"].push_back(std::move(p));
    }
    page.lists["latency"].push_back(std::move(v));
  }
}

}  // namespace bakeoff::report
