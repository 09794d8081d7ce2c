#include "report/published_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipe/published_table.h"
#include "records/names.h"
#include "report/baseline_section.h"
#include "report/effects_section.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using recipe::Published;
using recipe::PublishedRow;

std::string statement(const recipe::Published& published) {
  std::string text;
  if (published.compared > 1) {
    text = fmt::format(
        "The two orders agree in {:.0f}% of the pairs of rows (Kendall's tau {:.2f} over {} rows). ",
        50 * (1 + published.agreement), published.agreement, published.compared);
  }
  if (published.epochs > 0) {
    text +=
        "Seconds here are those of whole trainings, compilation and every epoch's start included. Ratios are "
        "to the fastest of the rows that were trained here; ";
  } else {
    text +=
        "Here steps were timed, no whole trainings ([fit] does that). Ratios are to the fastest of the rows "
        "that were ranked here; ";
  }
  return text +
         "machines, versions and precisions "
         "differ. Published: " +
         one_line(published.source) + ".";
}

Json to_json(const Published& p) {
  Json rows = Json::array();
  for (const PublishedRow& row : p.rows) {
    rows.push_back({{"contender", row.contender},
                    {"seconds", number(row.seconds)},
                    {"ratio", number(row.ratio)},
                    {"place", row.place},
                    {"measured_ms", number(row.measured_ms)},
                    {"measured_seconds", number(row.measured_s)},
                    {"measured_ratio", number(row.measured_ratio)},
                    {"measured_place", row.measured_place ? Json(*row.measured_place) : Json(nullptr)}});
  }
  return {{"source", p.source},
          {"rows", rows},
          {"measured", p.epochs > 0 ? "whole trainings" : "steps"},
          {"epochs", p.epochs > 0 ? Json(p.epochs) : Json(nullptr)},
          {"kendall_tau", number(p.agreement)},
          {"compared", p.compared}};
}

std::string in_seconds(double value) { return significant(value, 3) + " s"; }

// The title and the numbers of what was measured here: step times, or whole trainings.
Quantity<PublishedRow> measured(const Published& p) {
  if (p.epochs == 0) {
    return {{.title = "ms/step here", .meaning = "Milliseconds of one step in this race.", .priority = 3},
            [](const PublishedRow& row) { return number(row.measured_ms); },
            milliseconds};
  }
  return {{.title = p.epochs == 1 ? "1 epoch here" : fmt::format("{} epochs here", p.epochs),
           .meaning = "Seconds of a whole training here.",
           .priority = 3},
          [](const PublishedRow& row) { return number(row.measured_s); },
          in_seconds};
}

std::vector<Quantity<PublishedRow>> quantities(const Published& p) {
  const auto here = [fits = p.epochs > 0](const PublishedRow& row) {
    return fits ? row.measured_s.has_value() : row.measured_ms.has_value();
  };
  return {
      {{.title = "contender", .left = true, .name = true},
       [](const PublishedRow& row) { return Json(row.contender); }},
      {{.title = "published", .meaning = "Seconds that the published table states.", .priority = 2},
       [](const PublishedRow& row) { return number(row.seconds); },
       [](const PublishedRow& row) { return Cell{fmt::format("{:g} s", row.seconds)}; }},
      {{.title = "place",
        .meaning = "Place of the published seconds among the rows that were measured here."},
       [here](const PublishedRow& row) { return here(row) ? Json(row.place) : Json(nullptr); },
       count},
      {{.title = "ratio",
        .meaning = "Published seconds over the fastest published ones of the rows measured here."},
       [compared = p.compared](const PublishedRow& row) {
         return compared > 0 ? number(row.ratio) : Json(nullptr);
       },
       ratio},
      measured(p),
      {{.title = "place here", .meaning = "Place of the time measured here."},
       [](const PublishedRow& row) { return row.measured_place ? Json(*row.measured_place) : Json(nullptr); },
       count},
      {{.title = "ratio here", .meaning = "Time measured here over the fastest one."},
       [](const PublishedRow& row) { return number(row.measured_ratio); },
       ratio},
  };
}

}  // namespace

std::optional<Section> published_section(const Summary& s) {
  if (!s.published) return std::nullopt;
  std::vector<PublishedRow> rows = s.published->rows;
  std::erase_if(rows, [&](const PublishedRow& row) {
    return std::none_of(s.manifest.contenders.begin(), s.manifest.contenders.end(),
                        [&](const Contender& c) { return c.id == row.contender; });
  });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  Section out{.key = "published",
              .label = "Published",
              .title = "Against the published table",
              .legend = statement(*s.published),
              .columns = columns_of(quantities(*s.published), rows),
              .json = to_json(*s.published)};
  for (const PublishedRow& row : rows) out.row_names.push_back(one_line(row.contender));
  out.notes.resize(rows.size());
  return out;
}

std::vector<Section> sections_of(const Summary& s) {
  std::vector<Section> all;
  if (auto baseline = baseline_section(s)) all.push_back(std::move(*baseline));
  if (auto effects = effects_section(s)) all.push_back(std::move(*effects));
  if (auto published = published_section(s)) all.push_back(std::move(*published));
  all.insert(all.end(), s.studies.begin(), s.studies.end());
  for (Section& section : all) name_contenders(s.manifest.contenders, section);
  return all;
}

}  // namespace bakeoff::report
