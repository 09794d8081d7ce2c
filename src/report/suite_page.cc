// A suite has to be read at a glance: one table, names on the left, ratios shaded by how far they are behind
// the best of their column. The same markup is a table on a screen and cards on a phone; which of the two a
// width gets is the style sheet's choice, and these classes tell it how many columns there are.

#include "report/suite_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/charts.h"
#include "report/page.h"
#include "report/suite_sections.h"
#include "report/svg.h"
#include "report/wide_tables.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

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
             {"cell_markup", escape_markup(cell.text)},
             {"cell_range", cell.range},
             {"cell_hint", cell.hint},
             {"cell_class", class_of(cell.ink)}};
  v.flags = {{"has_hint", !cell.hint.empty()}};
  return v;
}

// "heat2": how far a contender is behind the fastest of the column, for its shade; empty where it is not known.
std::string heat_of(const suite::Table& t, size_t contender, size_t column) {
  if (contender >= t.contenders.size()) return "";
  double ratio = 0;
  if (column <= t.rows.size()) {
    const suite::TableCell& cell = t.rows[column - 1].cells[contender];
    if (cell.standing == suite::Standing::kTimed || cell.standing == suite::Standing::kBound)
      ratio = cell.ratio.value;
  } else if (t.means[contender].compared) {
    ratio = t.means[contender].ratio.value;
  }
  return heat_class(ratio);
}

// Of a recipe with a link to its race.
View recipe_heading(const Section& section, size_t c, const suite::Table& table) {
  const bool linked = c > 0 && c <= table.rows.size() && table.rows[c - 1].failure.empty();
  return {{{"name", section.columns[c].column.title},
           {"hint", ""},
           {"link", linked ? table.rows[c - 1].folder + "/report.html" : ""}},
          {{"is_number", c > 0}, {"has_link", linked}, {"is_foot", c > table.rows.size()}},
          {}};
}

View contender_heading(const Section& section, size_t row, const suite::Table& table) {
  const Cell& name = section.columns.front().cells[row];
  return {{{"name", name.text}, {"hint", name.hint}, {"link", ""}},
          {{"is_number", true}, {"has_link", false}, {"is_foot", row >= table.contenders.size()}},
          {}};
}

View suite_section_view(const Section& section, const suite::Table& table) {
  View v;
  const Picture picture = section.pictures.empty() ? Picture{} : section.pictures.front();
  const bool tall = section.columns.size() > kMostColumns;
  v.texts = {{"section_id", section.key},
             {"section_title", section.title},
             {"section_legend", section.legend},
             {"table_class", tall ? tall_class(section.rows()) : ""},
             {"picture_wide", speedup_chart(picture, kWide)},
             {"picture_narrow", speedup_chart(picture, kNarrow)}};
  v.flags["has_picture"] = !v.texts["picture_wide"].empty();
  const bool ratios = section.key == "table";
  const auto cell = [&](size_t row, size_t c) {
    View one = suite_cell(section.columns[c], row);
    if (tall) one.texts["cell_title"] = section.columns.front().cells[row].text;
    one.texts["heat"] = ratios ? heat_of(table, row, c) : "";
    return one;
  };
  std::vector<View> columns, rows;
  for (size_t c = 0; c < section.columns.size(); ++c) columns.push_back(recipe_heading(section, c, table));
  for (size_t row = 0; row < section.rows(); ++row) rows.push_back(contender_heading(section, row, table));
  const size_t lines = tall ? columns.size() - 1 : rows.size();
  if (tall) columns.front().texts["name"] = "recipe";
  v.lists["heads"] = {columns.front()};
  std::vector<View>& heads = tall ? rows : columns;
  v.lists["heads"].insert(v.lists["heads"].end(), heads.begin() + (tall ? 0 : 1), heads.end());
  for (size_t at = 0; at < lines; ++at) {
    View line = tall ? columns[at + 1] : rows[at];
    for (size_t k = 0; k + 1 < v.lists["heads"].size(); ++k)
      line.lists["cells"].push_back(tall ? cell(k, at + 1) : cell(at, k + 1));
    v.lists["lines"].push_back(std::move(line));
  }
  for (const std::string& sentence : section.sentences)
    v.lists["remarks"].push_back({{{"remark", sentence}}, {}, {}});
  v.flags["has_remarks"] = !section.sentences.empty();
  return v;
}

View suite_tile(const std::string& value, const std::string& label) {
  return {{{"tile_value", value}, {"tile_label", label}}, {}, {}};
}

std::vector<View> suite_tiles(const suite::Table& t) {
  const auto rows =
      std::count_if(t.rows.begin(), t.rows.end(), [](const auto& r) { return r.failure.empty(); });
  const auto sure = std::count_if(t.rows.begin(), t.rows.end(), [](const auto& r) { return r.sure; });
  std::vector<View> out = {suite_tile(fmt::format("{} of {}", rows, t.rows.size()), "recipes raced"),
                           suite_tile(fmt::format("{}", t.contenders.size()), "contenders"),
                           suite_tile(fmt::format("{}", sure), "recipes with a sure winner")};
  if (!t.mean_rows.empty())
    out.push_back(suite_tile(fmt::format("{} of {}", t.mean_rows.size(), t.rows.size()),
                             "recipes in the geometric mean"));
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
                      {"missing_contender", t.name_of(t.contenders[i])},
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
