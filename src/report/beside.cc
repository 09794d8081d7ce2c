#include "report/beside.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipe/published_table.h"
#include "table/numbers.h"
#include "report/table.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;

std::vector<BesideRow> beside_rows(const Summary& summary) {
  std::vector<BesideRow> rows;
  if (!summary.published) return rows;
  std::vector<recipe::PublishedRow> published = summary.published->rows;
  std::erase_if(published, [&](const recipe::PublishedRow& row) {
    return std::none_of(summary.manifest.contenders.begin(), summary.manifest.contenders.end(),
                        [&](const Contender& c) { return c.id == row.contender; });
  });
  std::stable_sort(published.begin(), published.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  for (const recipe::PublishedRow& row : published) {
    const bool fits = summary.published->epochs > 0;
    const bool here = fits ? row.measured_s.has_value() : row.measured_ms.has_value();
    rows.push_back({.contender = one_line(row.contender),
                    .seconds = fmt::format("{:g} s", row.seconds),
                    .place = here ? fmt::format("{}", row.place) : kNone,
                    .ratio = summary.published->compared > 0 ? ratio(row.ratio) : kNone,
                    .here = !here  ? kNone
                            : fits ? significant(*row.measured_s, 3) + " s"
                                   : milliseconds(*row.measured_ms),
                    .measured_place = here ? fmt::format("{}", *row.measured_place) : kNone,
                    .measured_ratio = here ? ratio(*row.measured_ratio) : kNone});
  }
  return rows;
}

std::string beside_title(const recipe::Published& published) {
  if (published.epochs == 0) return "ms/step here";
  return published.epochs == 1 ? "1 epoch here" : fmt::format("{} epochs here", published.epochs);
}

std::string beside_statement(const recipe::Published& published) {
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

std::string beside_markdown(const Summary& summary) {
  const auto rows = beside_rows(summary);
  if (rows.empty()) return "";
  std::string out = fmt::format(
      "\n**Beside the published table**\n\n| contender | published | place | ratio | {} | place here | "
      "ratio here |\n|---|---:|---:|---:|---:|---:|---:|\n",
      beside_title(*summary.published));
  for (const BesideRow& r : rows) {
    std::string name;
    for (const char c : r.contender) name += c == '|' ? "\\|" : std::string(1, c);
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", name, r.seconds, r.place, r.ratio, r.here,
                       r.measured_place, r.measured_ratio);
  }
  return out + "\n" + beside_statement(*summary.published) + "\n";
}

std::vector<std::string> beside_lines(const Summary& summary, int width, bool colour) {
  const auto rows = beside_rows(summary);
  if (rows.empty()) return {};
  std::vector<Column> columns;
  const auto add = [&](const std::string& title, int priority, bool left, std::string BesideRow::*text) {
    Column column{title, priority, left, {}};
    for (const BesideRow& row : rows) column.cells.push_back({row.*text, Ink::kPlain});
    columns.push_back(std::move(column));
  };
  add("contender", 0, true, &BesideRow::contender);
  columns.back().wraps = true;
  add("published", 2, false, &BesideRow::seconds);
  add("place", 0, false, &BesideRow::place);
  add("ratio", 0, false, &BesideRow::ratio);
  add(beside_title(*summary.published), 3, false, &BesideRow::here);
  add("place here", 0, false, &BesideRow::measured_place);
  add("ratio here", 0, false, &BesideRow::measured_ratio);
  return layout(choose_columns(std::move(columns), width), width, colour);
}

}  // namespace bakeoff::report
