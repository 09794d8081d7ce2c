#include "report/rankings_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "report/page.h"
#include "report/svg.h"
#include "report/wide_tables.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using regression::RankedRun;
using regression::Rankings;
using OfPlace = std::function<std::string(const regression::Place&)>;

namespace {

struct RankedTable {
  std::string id, title, legend;
  OfPlace text, range;
  bool shaded = false;
};

// The last part of each run's folder; all of it where two are called the same.
std::vector<std::string> run_names(const Rankings& r) {
  std::vector<std::string> names;
  for (const RankedRun& run : r.runs)
    names.push_back(table::one_line(std::filesystem::path(run.run).lexically_normal().filename().string()));
  const std::vector<std::string> brief = names;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].empty() || std::ranges::count(brief, brief[i]) > 1)
      names[i] = fmt::format("{} ({})", table::one_line(r.runs[i].run), i + 1);
  return names;
}

View place_view(const RankedTable& t, const std::optional<regression::Place>& place,
                const std::string& title) {
  View v;
  v.texts = {{"cell_title", title},
             {"cell_markup", escape_markup(place ? t.text(*place) : table::kNone)},
             {"cell_range", place && t.range ? t.range(*place) : std::string()},
             {"cell_hint", ""},
             {"cell_class", place ? "" : "dim"},
             {"heat", t.shaded && place ? heat_class(place->ratio.value) : ""}};
  v.flags = {{"has_hint", false}};
  return v;
}

View heading(const std::string& name, const std::string& hint, bool number) {
  return {{{"name", name}, {"hint", hint}, {"link", ""}},
          {{"is_number", number}, {"has_link", false}, {"is_foot", false}},
          {}};
}

// Contenders are the lines and runs the columns, or the other way round where runs have no room.
View table_view(const Rankings& r, const RankedTable& t) {
  const std::vector<std::string> runs = run_names(r);
  const bool tall = runs.size() >= kMostColumns;
  View v;
  v.texts = {{"section_id", t.id},
             {"section_title", t.title},
             {"section_legend", t.legend},
             {"table_class", tall ? tall_class(r.ids.size()) : ""}};
  v.flags = {{"has_picture", false}, {"has_remarks", false}, {"no_table", false}};
  v.lists["heads"] = {heading(tall ? "run" : "contender", "", false)};
  for (const std::string& name : tall ? r.names : runs) v.lists["heads"].push_back(heading(name, "", true));
  const size_t lines = tall ? runs.size() : r.ids.size(), columns = tall ? r.ids.size() : runs.size();
  for (size_t i = 0; i < lines; ++i) {
    View line = tall ? heading(runs[i], table::one_line(r.runs[i].machine), true)
                     : heading(r.names[i], r.ids[i], true);
    for (size_t k = 0; k < columns; ++k) {
      const auto& place = tall ? r.runs[i].places[k] : r.runs[k].places[i];
      line.lists["cells"].push_back(place_view(t, place, tall ? r.names[k] : runs[k]));
    }
    v.lists["lines"].push_back(std::move(line));
  }
  return v;
}

bool has_any(const Rankings& r, const std::optional<double> regression::Place::*member) {
  for (const RankedRun& run : r.runs)
    for (const auto& place : run.places)
      if (place && (*place).*member) return true;
  return false;
}

std::vector<RankedTable> ranked_tables(const Rankings& r) {
  std::vector<RankedTable> all = {
      {"rank", "Ranks",
       "Rank in its own run; below it the step time over that of the leader of the same run, with its interval.",
       regression::rank_text,
       [](const auto& p) {
         return table::ratio(p.ratio.value) + " " + table::interval(p.ratio, table::ratio);
       },
       true},
      {"time", "Milliseconds of a step",
       "Median over the heats of its own run. Times of two runs were never paired: no ratio of them is a finding.",
       [](const auto& p) { return table::milliseconds(p.ms); }, nullptr}};
  if (has_any(r, &regression::Place::joules))
    all.push_back({"energy", "Joules of a sample", "Where the machine measures its energy.",
                   [](const auto& p) { return regression::any_size(p.joules); }, nullptr});
  if (has_any(r, &regression::Place::price))
    all.push_back({"price", "Price of a million samples",
                   "At the price of an hour that each run's recipe states, in its currency.",
                   [](const auto& p) { return regression::any_size(p.price); }, nullptr});
  return all;
}

View machines_view(const Rankings& r) {
  View v;
  v.texts = {{"section_id", "runs"}, {"section_title", "Runs"}, {"section_legend", ""}, {"table_class", ""}};
  v.flags = {{"no_table", true}, {"has_remarks", true}, {"has_picture", false}};
  const std::vector<std::string> names = run_names(r);
  for (size_t i = 0; i < names.size(); ++i) {
    const RankedRun& run = r.runs[i];
    v.lists["remarks"].push_back(
        {{{"remark",
           table::one_line(fmt::format("{}: {}; {}; {}; {}{}{}", names[i], run.started, run.machine,
                                       run.workload, run.state, run.fleet ? "; nodes of a fleet" : "",
                                       run.currency.empty() ? "" : "; prices in " + run.currency))}},
         {},
         {}});
  }
  return v;
}

}  // namespace

std::string render_rankings_page(const Rankings& r) {
  View page;
  page.texts = {{"title", "rankings side by side"},
                {"headline", never_paired(r)},
                {"state", "no ratios between runs"},
                {"state_class", ""}};
  page.lists["tiles"] = {
      {{{"tile_value", fmt::format("{}", r.runs.size())}, {"tile_label", "runs"}}, {}, {}},
      {{{"tile_value", fmt::format("{}", r.ids.size())}, {"tile_label", "contenders"}}, {}, {}}};
  if (!r.ids.empty())
    for (const RankedTable& table : ranked_tables(r)) page.lists["sections"].push_back(table_view(r, table));
  page.lists["sections"].push_back(machines_view(r));
  page.flags["has_missing"] = false;
  return render_page("suite.html", std::move(page));
}

}  // namespace bakeoff::report
