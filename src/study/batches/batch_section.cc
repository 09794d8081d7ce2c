// The search for the best batch size as a table and a picture. The best is the batch with the greatest
// throughput; the range over the processes stands beside each rate, so that a reader sees whether a smaller
// batch was as quick. Batches that failed stay in the table with their reason, since the largest that works
// is an answer too.

#include "study/batches/batch_section.h"

#include <fmt/format.h>

#include <set>

#include "study/batches/batch_search.h"
#include "study/section_rows.h"
#include "table/numbers.h"

namespace bakeoff {

using namespace table;
namespace {

std::string whole(int64_t n) { return count(static_cast<double>(n)); }

const BatchPoint* best_of(const SearchRow& row) { return row.best ? row.at(*row.best) : nullptr; }

bool timed(const BatchPoint& point) { return point.failure.empty(); }

// Samples a second, with the range over the processes where there are several.
Cell rate_cell(const BatchPoint& point) {
  Cell cell{count(point.samples_per_s)};
  if (point.processes > 1) cell.range = fmt::format("({} to {})", count(point.least), count(point.most));
  return cell;
}

Cell tried(const SearchRow& row) {
  if (row.points.empty()) return {};
  if (row.points.size() == 1) return {whole(row.points.front().batch)};
  return {fmt::format("{} to {} ({})", whole(row.points.front().batch), whole(row.points.back().batch),
                      row.points.size())};
}

Cell at_batch(const SearchRow& row, int64_t batch) {
  const BatchPoint* point = row.at(batch);
  if (point == nullptr) return {.hint = "It was not tried."};
  if (!timed(*point)) return {.hint = one_line(point->failure)};
  Cell cell = rate_cell(*point);
  if (row.best == batch) cell.ink = Ink::kBold;
  return cell;
}

Json points(const SearchRow& row) {
  Json all = Json::array();
  for (const BatchPoint& p : row.points) {
    all.push_back({{"batch", p.batch},
                   {"samples_per_second", timed(p) ? number(p.samples_per_s) : Json(nullptr)},
                   {"by_process", timed(p) ? Json{number(p.least), number(p.most)} : Json(nullptr)},
                   {"processes", p.processes},
                   {"peak_rss_bytes", p.peak_rss_bytes},
                   {"failure", timed(p) ? Json(nullptr) : Json(p.failure)}});
  }
  return all;
}

const std::vector<Quantity<SearchRow>> kQuantities = {
    contender_quantity<SearchRow>(),
    {{.key = "best_batch",
      .title = "best batch",
      .meaning = "The batch with the greatest throughput of those that were tried."},
     [](const SearchRow& r) { return best_of(r) ? Json(*r.best) : Json(nullptr); },
     count},
    {{.csv = {{"best_batch_samples_per_second", ""}},
      .title = "samples/s",
      .meaning = "Samples a second at the best batch: the median of its processes, with their range.",
      .range_title = "processes",
      .range_priority = 3},
     [](const SearchRow& r) { return best_of(r) ? number(best_of(r)->samples_per_s) : Json(nullptr); },
     [](const SearchRow& r) { return best_of(r) ? rate_cell(*best_of(r)) : Cell{}; }},
    {{.key = "enough_batch",
      .title = "enough",
      .meaning = "The least batch whose throughput is within the margin of the greatest.",
      .priority = 1},
     [](const SearchRow& r) { return best_of(r) ? Json(r.enough) : Json(nullptr); },
     count},
    {{.title = "tried",
      .meaning = "Batches that were tried: the least, the greatest, and how many.",
      .priority = 2,
      .left = true},
     nullptr,
     tried},
    {{.key = "points", .in_csv = false}, points},
    {{.key = "note", .in_csv = false}, [](const SearchRow& r) { return Json(r.note); }},
};

// With a column for every batch that was tried.
std::vector<Quantity<SearchRow>> quantities(const std::vector<SearchRow>& rows) {
  std::set<int64_t> batches;
  for (const SearchRow& row : rows) {
    for (const BatchPoint& point : row.points) batches.insert(point.batch);
  }
  std::vector<Quantity<SearchRow>> all = kQuantities;
  for (const int64_t batch : batches) {
    all.push_back({{.title = "at " + whole(batch),
                    .meaning = fmt::format("Samples a second at a batch of {} rows.", whole(batch)),
                    .priority = kLuxury},
                   nullptr,
                   [batch](const SearchRow& r) { return at_batch(r, batch); }});
  }
  return all;
}

Picture picture(const std::vector<SearchRow>& rows) {
  Picture all{.x_title = "rows a step", .y_title = "samples/s", .log_x = true};
  for (const SearchRow& row : rows) {
    Curve curve{.contender = row.contender, .marked_x = static_cast<double>(row.best.value_or(0))};
    for (const BatchPoint& p : row.points) {
      if (timed(p)) curve.points.push_back({static_cast<double>(p.batch), p.samples_per_s, p.least, p.most});
    }
    if (!curve.points.empty()) all.curves.push_back(std::move(curve));
  }
  return all;
}

std::string legend(double margin, int64_t batch) {
  return fmt::format(
      "Samples a second at each batch, in fresh processes of its own; ranges are over the processes, and no "
      "error rate is claimed. Enough: the least batch within {} of the best. Another batch is another "
      "training: this is throughput, not time to an accuracy. Proven equal is the batch of {}; the other "
      "scripts differ in that number alone.",
      percent(margin), whole(batch));
}

Status run(const Afterwards& race) { return search_batches(race, emitted_lanes(race.plan, race.progress)); }

StudySection section_of_run(const RunDirectory& directory, const StudyContext& context) {
  TRY(const auto trials, directory.read<BatchTrial>());
  const recipe::Recipe& recipe = context.recipe;
  const auto rows = search_rows(trials, context.ids(), recipe.search, recipe.margin);
  if (rows.empty()) return std::optional<Section>();
  return std::optional(batch_section(rows, recipe.margin, recipe.training.batch));
}

}  // namespace

Study batch_search_study() {
  return {.name = "search",
          .wanted = [](const recipe::Recipe& recipe) { return recipe.search.wanted; },
          .run = run,
          .section = section_of_run};
}

Section batch_section(const std::vector<SearchRow>& rows, double margin, int64_t batch) {
  const auto all = quantities(rows);
  Section section = section_of(all, rows);
  section.key = "batch_search";
  section.label = "Batch size";
  section.title = "Batch size";
  section.legend = legend(margin, batch);
  section.json = json_rows(all, rows);
  section.pictures = {picture(rows)};
  add_csv(section, all, rows, "");
  return section;
}

}  // namespace bakeoff
