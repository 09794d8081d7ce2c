#include "report/search_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/cells.h"
#include "report/charts.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::string whole(int64_t n) { return count(static_cast<double>(n)); }

std::string range_of(const BatchPoint& point) {
  if (point.processes < 2) return kNone;
  return fmt::format("{} to {}", count(point.least), count(point.most));
}

std::string tried(const SearchRow& row) {
  if (row.points.empty()) return kNone;
  if (row.points.size() == 1) return whole(row.points.front().batch);
  return fmt::format("{} to {} ({})", whole(row.points.front().batch), whole(row.points.back().batch),
                     row.points.size());
}

// The point of a row at `batch`; null where it has none.
const BatchPoint* point_at(const SearchRow& row, std::optional<int64_t> batch) {
  const auto found = std::find_if(row.points.begin(), row.points.end(),
                                  [&](const BatchPoint& point) { return point.batch == batch; });
  return found == row.points.end() ? nullptr : &*found;
}

}  // namespace

std::vector<SearchCells> search_cells(const Summary& s) {
  std::vector<SearchCells> out;
  for (const SearchRow& row : s.search) {
    SearchCells c{one_line(row.contender), kNone, kNone, kNone, kNone, tried(row), one_line(row.note)};
    if (const BatchPoint* best = point_at(row, row.best)) {
      c.best = whole(best->batch);
      c.rate = count(best->samples_per_s);
      c.range = range_of(*best);
      c.enough = whole(row.enough);
    }
    out.push_back(std::move(c));
  }
  return out;
}

std::string search_legend(const Summary& s) {
  return fmt::format(
      "Samples a second at each batch, in fresh processes of its own; ranges are over the processes, and no "
      "error "
      "rate is claimed. Enough: the least batch within {} of the best. Another batch is another training: "
      "this is "
      "throughput, not time to an accuracy. Proven equal is the batch of {}; the other scripts differ in "
      "that number "
      "alone.",
      percent(s.margin), count(static_cast<double>(s.batch)));
}

std::vector<Column> search_columns(const Summary& s) {
  const std::vector<SearchCells> rows = search_cells(s);
  std::vector<Column> columns;
  const auto add = [&](const char* title, int priority, bool left, std::string SearchCells::*text) {
    Column column{title, priority, left, {}};
    for (const SearchCells& row : rows) column.cells.push_back({row.*text});
    columns.push_back(std::move(column));
  };
  add("contender", 0, true, &SearchCells::name);
  columns.back().wraps = true;
  add("best batch", 0, false, &SearchCells::best);
  add("samples/s", 0, false, &SearchCells::rate);
  add("processes", 3, true, &SearchCells::range);
  add("enough", 1, false, &SearchCells::enough);
  add("tried", 2, true, &SearchCells::tried);
  return columns;
}

std::vector<std::pair<std::string, std::string>> search_fields(const Summary& s,
                                                               const std::string& contender) {
  if (s.search.empty()) return {};
  const auto row = std::find_if(s.search.begin(), s.search.end(),
                                [&](const SearchRow& r) { return r.contender == contender; });
  const BatchPoint* best = row != s.search.end() ? point_at(*row, row->best) : nullptr;
  return {{"best_batch", best ? fmt::format("{}", best->batch) : ""},
          {"best_batch_samples_per_second", best ? plain(best->samples_per_s) : ""},
          {"enough_batch", best ? fmt::format("{}", row->enough) : ""}};
}

void add_search(const Summary& s, View& page) {
  page.flags["has_search"] = !s.search.empty();
  if (s.search.empty()) return;
  page.texts["search_legend"] = search_legend(s);
  page.texts["search_wide"] = batch_chart(s, kWide);
  page.texts["search_narrow"] = batch_chart(s, kNarrow);
  std::set<int64_t> batches;
  for (const SearchRow& row : s.search) {
    for (const BatchPoint& point : row.points) batches.insert(point.batch);
  }
  for (const int64_t batch : batches)
    page.lists["search_batches"].push_back({{{"search_batch", whole(batch)}}, {}, {}});
  const std::vector<SearchCells> cells = search_cells(s);
  for (size_t i = 0; i < cells.size(); ++i) {
    View v;
    v.texts = {{"search_name", cells[i].name},
               {"search_best", cells[i].best},
               {"search_enough", cells[i].enough},
               {"search_note", cells[i].note}};
    v.flags["has_search_note"] = !cells[i].note.empty();
    for (const int64_t batch : batches) {
      const BatchPoint* point = point_at(s.search[i], batch);
      const bool timed = point != nullptr && point->failure.empty();
      View cell;
      cell.texts = {{"search_of", whole(batch)},
                    {"search_rate", timed ? count(point->samples_per_s) : kNone},
                    {"search_range", timed && point->processes > 1 ? range_of(*point) : ""},
                    {"search_why", point != nullptr ? one_line(point->failure) : "not tried"}};
      cell.flags["is_best"] = s.search[i].best == batch;
      v.lists["search_cells"].push_back(std::move(cell));
    }
    page.lists["search"].push_back(std::move(v));
  }
  for (const Series& series : all_series(s)) {
    if (std::none_of(s.search.begin(), s.search.end(),
                     [&](const auto& row) { return row.contender == series.row->contender.id; }))
      continue;
    page.lists["search_legend_rows"].push_back({{{"series", std::to_string(series.index)},
                                                 {"legend_class", series.cls},
                                                 {"legend_name", series.name}},
                                                {},
                                                {}});
  }
}

}  // namespace bakeoff::report
