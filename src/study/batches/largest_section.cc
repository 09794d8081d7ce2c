#include "study/batches/largest_section.h"

#include "study/batches/batch_search.h"
#include "study/batches/largest_batch.h"
#include "study/section_rows.h"
#include "table/numbers.h"

namespace bakeoff {

using namespace table;
namespace {

constexpr const char* kStops[] = {"nothing", "limit", "allocator", "kernel",
                                  "crash",   "time",  "start",     "no script"};

template <typename T>
Json stated(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json positive(int64_t n) { return n > 0 ? Json(n) : Json(nullptr); }

Cell limit_cell(const LargestRow& row) {
  if (row.limit_bytes > 0) return {bytes(static_cast<double>(row.limit_bytes))};
  return row.largest ? Cell{"the device's"} : Cell{};
}

const std::vector<Quantity<LargestRow>> kLargestQuantities = {
    contender_quantity<LargestRow>(),
    {{.key = "largest_batch",
      .title = "largest batch",
      .meaning = "The largest batch of those that were tried that fits into memory."},
     [](const LargestRow& r) { return stated(r.largest); },
     count},
    {{.key = "fails_at",
      .csv = {{"largest_batch_fails_at", ""}},
      .title = "fails at",
      .meaning = "The least batch of those that were tried that does not fit.",
      .priority = 1},
     [](const LargestRow& r) { return stated(r.fails_at); },
     count},
    {{.key = "peak_bytes",
      .csv = {{"largest_batch_peak_bytes", ""}},
      .title = "peak",
      .meaning = "The most memory that the process had at the largest batch.",
      .priority = 2},
     [](const LargestRow& r) { return positive(r.peak_bytes); },
     bytes},
    {{.key = "exact", .in_csv = false}, [](const LargestRow& r) { return Json(r.exact); }},
    {{.key = "bytes_per_sample",
      .csv = {{"bytes_per_sample_over_batches", ""}},
      .title = "a sample",
      .meaning = "Memory that one more row in a batch takes: the slope of the peak over the batch."},
     [](const LargestRow& r) { return number(r.bytes_per_sample); },
     bytes},
    {{.key = "limit_bytes",
      .csv = {{"largest_batch_limit_bytes", ""}},
      .title = "limit",
      .meaning = "Memory that the process may take.",
      .priority = 3},
     [](const LargestRow& r) { return positive(r.limit_bytes); },
     limit_cell},
    {{.key = "stop", .in_csv = false},
     [](const LargestRow& r) { return Json(kStops[static_cast<int>(r.stop)]); }},
    {{.key = "stopped_by", .csv = {{"largest_batch_stopped_by", ""}}},
     [](const LargestRow& r) { return Json(r.note); }},
    {{.key = "tried", .in_csv = false}, [](const LargestRow& r) { return Json(r.tried); }},
};

constexpr const char* kLegend =
    "The largest batch of which a fresh process takes three steps within the limit: beyond it its allocator "
    "fails, or it is killed. Searched by doubling, then by bisection to a sixteenth. A sample: the slope of "
    "the process's peak over the batch, by least squares.";

Status run_largest(const Afterwards& race) {
  return search_largest(race, emitted_lanes(race.plan, race.progress));
}

StudySection largest_section_of_run(const RunDirectory& directory, const StudyContext& context) {
  TRY(const auto trials, directory.read<LargestTrial>());
  const auto rows =
      largest_rows(trials, context.ids(), context.recipe.largest_batch.most, context.manifest.data_rows);
  if (rows.empty()) return std::optional<Section>();
  return std::optional(largest_section(rows));
}

}  // namespace

Study largest_batch_study() {
  return {.name = "largest_batch",
          .wanted = [](const recipe::Recipe& recipe) { return recipe.largest_batch.wanted; },
          .run = run_largest,
          .section = largest_section_of_run};
}

Section largest_section(const std::vector<LargestRow>& rows) {
  Section section = section_of(kLargestQuantities, rows);
  section.key = "largest_batch";
  section.label = "Largest batch";
  section.title = "Largest batch that fits";
  section.legend = kLegend;
  section.json = json_rows(kLargestQuantities, rows);
  add_csv(section, kLargestQuantities, rows, "");
  return section;
}

}  // namespace bakeoff
