#include "report/suite_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/charts.h"
#include "report/names.h"
#include "report/page.h"
#include "report/suite_sections.h"
#include "report/svg.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

// More columns than this have no room on any screen: their table is one card for each row, as on a phone.
constexpr size_t kMostColumns = 11;

const char* class_of(Ink ink) {
  switch (ink) {
    case Ink::kGood:
      return "fast";
    case Ink::kWarn:
      return "slow";
    case Ink::kBad:
      return "none";
    case Ink::kDim:
      return "dim";
    case Ink::kPlain:
    case Ink::kBold:
      break;
  }
  return "";
}

View suite_cell(const FilledColumn& column, size_t row) {
  const Cell& cell = column.cells[row];
  View v;
  v.texts = {{"cell_title", column.column.title},
             {"cell_markup", column.column.left ? breakable(cell.text) : escape_markup(cell.text)},
             {"cell_range", cell.range},
             {"cell_hint", cell.hint},
             {"cell_class", class_of(cell.ink)}};
  v.flags = {{"is_text", column.column.left}, {"has_hint", !cell.hint.empty()}};
  return v;
}

View suite_section_view(const Section& section, const suite::Table& table) {
  View v;
  const Picture picture = section.pictures.empty() ? Picture{} : section.pictures.front();
  v.texts = {{"section_id", section.key},
             {"section_title", section.title},
             {"section_legend", section.legend},
             {"table_class", section.columns.size() > kMostColumns ? "cardy" : ""},
             {"picture_wide", speedup_chart(picture, kWide)},
             {"picture_narrow", speedup_chart(picture, kNarrow)}};
  v.flags["has_picture"] = !v.texts["picture_wide"].empty();
  for (size_t c = 0; c < section.columns.size(); ++c) {
    const FilledColumn& column = section.columns[c];
    v.lists["heads"].push_back(
        {{{"head_markup", breakable(column.column.title)}}, {{"head_number", !column.column.left}}, {}});
  }
  for (size_t row = 0; row < section.rows(); ++row) {
    View line;
    const bool mean = row >= table.rows.size();
    line.texts = {{"row_name", section.row_names[row]},
                  {"row_note", section.notes[row]},
                  {"row_link", mean ? "" : table.rows[row].folder + "/report.html"}};
    line.flags = {{"is_mean", mean},
                  {"has_note", !section.notes[row].empty()},
                  {"has_link", !mean && table.rows[row].failure.empty()}};
    for (size_t c = 1; c < section.columns.size(); ++c)
      line.lists["cells"].push_back(suite_cell(section.columns[c], row));
    v.lists["lines"].push_back(std::move(line));
  }
  return v;
}

View suite_tile(const std::string& value, const std::string& label) {
  return {{{"tile_value", value}, {"tile_label", label}}, {}, {}};
}

std::vector<View> suite_tiles(const suite::Table& t) {
  const auto rows =
      std::count_if(t.rows.begin(), t.rows.end(), [](const auto& r) { return r.failure.empty(); });
  const auto sure = std::count_if(t.rows.begin(), t.rows.end(), [](const auto& r) { return r.sure; });
  std::vector<View> out = {suite_tile(fmt::format("{} of {}", rows, t.rows.size()), "rows raced"),
                           suite_tile(fmt::format("{}", t.contenders.size()), "contenders"),
                           suite_tile(fmt::format("{}", sure), "rows with a sure winner")};
  if (!t.mean_rows.empty())
    out.push_back(
        suite_tile(fmt::format("{} of {}", t.mean_rows.size(), t.rows.size()), "rows in the geometric mean"));
  if (t.alpha > 0) out.push_back(suite_tile(percent(t.alpha), "error rate of the means, at most"));
  return out;
}

// Why cells have no time.
std::vector<View> missing_views(const suite::Table& t) {
  std::vector<View> out;
  for (const suite::TableRow& row : t.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      if (row.cells[i].standing != suite::Standing::kNotRanked) continue;
      out.push_back({{{"missing_row", one_line(row.name)},
                      {"missing_contender", one_line(t.contenders[i])},
                      {"missing_reason", one_line(row.cells[i].reason)}},
                     {},
                     {}});
    }
  }
  return out;
}

}  // namespace

std::string render_suite_page(const suite::Table& t) {
  View page;
  const bool all = std::all_of(t.rows.begin(), t.rows.end(), [](const auto& row) { return row.decided; });
  page.texts = {{"title", one_line(suite::called(t))},
                {"headline", one_line(suite::headline(t))},
                {"state", t.interrupted ? "interrupted"
                          : all         ? "decided"
                                        : "not fully decided"},
                {"state_class", t.interrupted ? "bad"
                                : all         ? "good"
                                              : "warn"}};
  page.lists["tiles"] = suite_tiles(t);
  for (const Section& section : suite_sections(t))
    page.lists["sections"].push_back(suite_section_view(section, t));
  page.lists["missing"] = missing_views(t);
  page.flags["has_missing"] = !page.lists["missing"].empty();
  return render_page("suite.html", std::move(page));
}

}  // namespace bakeoff::report
