#include "report/largest_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::string whole(const std::optional<int64_t>& n) { return n ? count(static_cast<double>(*n)) : kNone; }

std::string whole_bytes(int64_t n) { return n > 0 ? bytes(static_cast<double>(n)) : kNone; }

}  // namespace

std::vector<LargestCells> largest_cells(const Summary& s) {
  std::vector<LargestCells> out;
  for (const LargestRow& row : s.largest) {
    out.push_back({.name = one_line(row.contender),
                   .largest = whole(row.largest),
                   .fails_at = whole(row.fails_at),
                   .peak = whole_bytes(row.peak_bytes),
                   .per_sample = row.bytes_per_sample ? bytes(*row.bytes_per_sample) : kNone,
                   .limit = row.limit_bytes > 0 ? bytes(static_cast<double>(row.limit_bytes))
                            : row.largest       ? "the device's"
                                                : kNone,
                   .note = one_line(row.stopped_by)});
  }
  return out;
}

std::string largest_legend() {
  return "The largest batch of which a fresh process takes three steps within the limit: beyond it its "
         "allocator fails, or it is killed. Searched by doubling, then by bisection to a sixteenth. A "
         "sample: "
         "the slope of the process's peak over the batch, by least squares.";
}

std::vector<Column> largest_columns(const Summary& s) {
  const std::vector<LargestCells> rows = largest_cells(s);
  std::vector<Column> columns;
  const auto add = [&](const char* title, int priority, bool left, std::string LargestCells::*text) {
    Column column{title, priority, left, {}};
    for (const LargestCells& row : rows) column.cells.push_back({row.*text});
    columns.push_back(std::move(column));
  };
  add("contender", 0, true, &LargestCells::name);
  columns.back().wraps = true;
  add("largest batch", 0, false, &LargestCells::largest);
  add("fails at", 1, false, &LargestCells::fails_at);
  add("peak", 2, false, &LargestCells::peak);
  add("a sample", 0, false, &LargestCells::per_sample);
  add("limit", 3, false, &LargestCells::limit);
  return columns;
}

std::vector<std::pair<std::string, std::string>> largest_fields(const Summary& s,
                                                                const std::string& contender) {
  if (s.largest.empty()) return {};
  const auto found = std::find_if(s.largest.begin(), s.largest.end(),
                                  [&](const LargestRow& r) { return r.contender == contender; });
  const LargestRow* row = found == s.largest.end() ? nullptr : &*found;
  const auto number = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string(); };
  return {
      {"largest_batch", row ? number(row->largest) : ""},
      {"largest_batch_fails_at", row ? number(row->fails_at) : ""},
      {"largest_batch_peak_bytes", row && row->peak_bytes > 0 ? fmt::format("{}", row->peak_bytes) : ""},
      {"bytes_per_sample_over_batches", row ? number(row->bytes_per_sample) : ""},
      {"largest_batch_limit_bytes", row && row->limit_bytes > 0 ? fmt::format("{}", row->limit_bytes) : ""},
      {"largest_batch_stopped_by", row ? one_line(row->stopped_by) : ""}};
}

void add_largest(const Summary& s, View& page) {
  page.flags["has_largest"] = !s.largest.empty();
  if (s.largest.empty()) return;
  page.texts["largest_legend"] = largest_legend();
  for (const LargestCells& row : largest_cells(s)) {
    page.lists["largest"].push_back({{{"largest_name", row.name},
                                      {"largest_batch", row.largest},
                                      {"largest_fails", row.fails_at},
                                      {"largest_peak", row.peak},
                                      {"largest_sample", row.per_sample},
                                      {"largest_limit", row.limit},
                                      {"largest_stop", row.note}},
                                     {},
                                     {}});
  }
}

}  // namespace bakeoff::report
