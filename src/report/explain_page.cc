// The page answers three questions from above: how far apart, why, what is left. Every sentence comes from
// the functions that make the terminal's (explain/words.h), so that page and terminal cannot say different
// things; here they are only given names for the template. A cause that was booked, not confirmed by a
// changed run, says so in place of its gain.

#include "report/explain_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "explain/words.h"
#include "report/chart_waterfall.h"
#include "report/page.h"
#include "table/numbers.h"

namespace bakeoff::report {
namespace {

namespace ex = bakeoff::explain;
using table::significant;

bool is_named(const ex::Explanation& e, const ex::Cause& cause) { return !e.equal && cause.named(); }

std::vector<View> tiles(const ex::Explanation& e) {
  std::vector<View> all;
  const auto add = [&](const std::string& value, const std::string& label) {
    all.push_back({.texts = {{"tile_value", value}, {"tile_label", label}}, .flags = {}, .lists = {}});
  };
  for (const ex::Subject& s : e.subjects)
    add(significant(1e3 * s.compared_s(), 3) + " ms", "of a " + ex::unit(e) + ", " + s.name);
  if (e.gap) add(significant(e.gap->value, 3), "times as long, " + e.subjects[0].name);
  if (e.together && !e.equal) add(significant(e.together->value, 3), "times as fast with all changes");
  if (e.residual && !e.equal)
    add(significant(e.residual->value, 3),
        e.has_booked() ? "is left of the gap, not confirmed" : "is left of the gap, unexplained");
  return all;
}

View cause_view(const ex::Explanation& e, const ex::Cause& c) {
  const std::string where = ex::place(e, c);
  const auto lines = ex::diff(e, c);
  View view;
  view.texts = {{"cause_name", c.suspect.rule->cause},
                {"cause_place", where},
                {"cause_gain", c.finding == ex::Finding::kBooked
                                   ? fmt::format("at least {:.0f}% of the time",
                                                 std::floor(100 * *c.suspect.suspicion.booked))
                                   : significant(c.size(), 3) + " times as fast"},
                {"cause_seen", c.suspect.suspicion.evidence},
                {"cause_method", c.finding == ex::Finding::kBooked
                                     ? "No run was changed for it: its time was measured in the observed run."
                                     : fmt::format("The changed run {}.", c.suspect.rule->method)},
                {"cause_words", ex::gain_words(e, c)},
                {"cause_without", c.without ? ex::with_interval(*c.without) : ""},
                {"cause_change", ex::change_words(c)},
                {"cause_numbers", ex::numbers_words(e, c)},
                {"cause_before", lines ? "- " + lines->first : ""},
                {"cause_after", lines && !lines->second.empty() ? "+ " + lines->second : ""},
                {"cause_rule", c.suspect.rule->id}};
  view.flags = {{"has_place", !where.empty()},
                {"has_diff", lines.has_value()},
                {"has_without", c.without.has_value()},
                {"has_numbers", c.suspect.rule->numbers}};
  return view;
}

// The first column is text, the others are numbers unless `words`.
View table_view(const std::string& id, const std::string& title, const std::string& text,
                const std::vector<std::vector<std::string>>& rows, bool words = false) {
  View view;
  view.texts = {{"table_id", id}, {"table_title", title}, {"table_text", text}};
  for (size_t r = 0; r < rows.size(); ++r) {
    View row;
    std::vector<View> cells;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const bool number = i > 0 && !words;
      cells.push_back({.texts = {{r == 0 ? "head_title" : "cell_text", rows[r][i]}},
                       .flags = {{r == 0 ? "head_number" : "cell_number", number}},
                       .lists = {}});
    }
    if (r == 0) {
      view.lists["table_heads"] = std::move(cells);
    } else {
      row.lists["table_cells"] = std::move(cells);
      view.lists["table_rows"].push_back(std::move(row));
    }
  }
  return view;
}

View phases(const ex::Explanation& e) {
  std::vector<std::vector<std::string>> rows = {{"phase"}};
  for (const ex::Subject& s : e.subjects) rows[0].push_back(s.name + ", s");
  for (size_t i = 0; i < e.subjects[0].profile.phases.size(); ++i) {
    rows.push_back({e.subjects[0].profile.phases[i].title});
    for (const ex::Subject& s : e.subjects)
      rows.back().push_back(fmt::format("{:.2f}", s.profile.phases[i].seconds));
  }
  rows.push_back({"in all"});
  for (const ex::Subject& s : e.subjects) rows.back().push_back(ex::total_words(s));
  return table_view(
      "phases", "Phases of the observed runs",
      "Seconds of the one run in which each script was observed; the phases add up to the whole. " +
          ex::phases_words(e),
      rows);
}

std::vector<View> tables(const ex::Explanation& e) {
  std::vector<View> all = {phases(e)};
  if (auto rows = ex::accounts(e); !rows.empty())
    all.push_back(table_view(
        "accounts", "What the scripts were doing",
        "By looks at the stack every 5 ms in the observed runs, each of which belongs to one row.", rows));
  const auto differences = [&](const std::vector<ex::WorkDifference>& list, const char* id, const char* title,
                               const char* text) {
    if (list.empty()) return;
    std::vector<std::vector<std::string>> rows = {{"what", e.subjects[0].name, e.subjects[1].name}};
    for (const ex::WorkDifference& row : list) rows.push_back({row.what, row.first, row.second});
    all.push_back(table_view(id, title, text, rows, true));
  };
  differences(e.work, "work", "Not the same work",
              "What differs in what the two compute. A time per sample compares different things then.");
  differences(e.environment, "environment", "Environments",
              "What differs in versions and settings of the two processes.");
  const auto listed = [&](const auto& rows_of, const char* what, const char* id, const char* title,
                          const char* text) {
    for (const ex::Subject& s : e.subjects) {
      std::vector<std::vector<std::string>> seen = {{"share", what}};
      for (const auto& [share, row] : rows_of(s)) seen.push_back({share, row});
      if (seen.size() > 1) all.push_back(table_view(id + s.name, title + s.name, text, seen, true));
    }
  };
  listed(
      ex::hot_lines, "line", "lines-", "Lines of ",
      "In which lines the steps of the observed run were seen, by looks at the script's stack every 5 ms.");
  listed(ex::loop_books, "loop", "loops-", "Loops of ",
         "The loops that the script, or each round of its outermost loop, consists of, by the same looks.");
  listed(
      ex::hot_ops, "op", "ops-", "Ops of ",
      "Share of its time that ops of the framework take, by the framework's profiler in two steps of the observed run.");
  std::vector<std::vector<std::string>> code = {{"line", "text"}};
  for (const auto& [mark, text] : ex::differing_lines(e)) code.push_back({mark, text});
  if (code.size() > 1)
    all.push_back(table_view("code", "Lines that the scripts do not share",
                             "Lines marked - are those of " + e.subjects[0].name +
                                 ", lines marked + those of " + e.subjects[1].name + " in their place.",
                             code, true));
  std::vector<std::vector<std::string>> rows = {{"suspect", "seen", "found"}};
  for (const ex::Cause& c : e.causes)
    if (!is_named(e, c))
      rows.push_back({c.suspect.rule->cause, c.suspect.suspicion.evidence, ex::finding_words(c)});
  if (rows.size() > 1)
    all.push_back(table_view("tried", "Tried and not confirmed",
                             "Suspects that are no cause here, or not certainly one.", rows, true));
  return all;
}

}  // namespace

std::string render_explanation(const ex::Explanation& e) {
  View page;
  const bool pair = e.subjects.size() > 1;
  std::string title = "explain / " + e.subjects[0].name;
  if (pair) title += " against " + e.subjects[1].name;
  const bool undecided = pair && e.equal && (!e.gap || e.gap->high >= 1.02);
  const size_t named = e.equal ? 0 : e.named();
  page.texts = {
      {"title", title},
      {"headline", ex::headline(e)},
      {"unit", ex::unit(e)},
      {"state", undecided ? "not certain"
                : e.equal ? "no gap"
                : pair    ? e.gap_is_certain() ? "gap confirmed" : "gap not certain"
                          : "observed"},
      {"state_class", undecided || (pair && !e.equal && !e.gap_is_certain()) ? "warn" : "good"},
      {"meaning", fmt::format("{} heats of fresh processes in {:.0f} s; the scripts ran as they are.{}",
                              e.heats, e.seconds, ex::hook_words(e))},
      {"shell", ex::shell_line(e)},
      {"causes_title", named == 1 ? "One cause" : fmt::format("{} causes", named)},
      {"nothing", e.equal ? "Without a gap no cause is named." : ex::nothing_words(e)}};
  page.flags["has_nothing"] = named == 0;
  page.flags["has_shell"] = named > 0 && !page.texts["shell"].empty();
  page.lists["tiles"] = tiles(e);
  for (const ex::Cause& c : e.causes)
    if (is_named(e, c)) page.lists["causes"].push_back(cause_view(e, c));
  page.lists["tables"] = tables(e);
  page.texts["waterfall_wide"] = waterfall_chart(e, 900);
  page.texts["waterfall_narrow"] = waterfall_chart(e, 360);
  page.flags["has_waterfall"] = !page.texts["waterfall_wide"].empty();
  if (const std::string applied = ex::applied_words(e); !applied.empty())
    page.lists["notes"].push_back({.texts = {{"note", applied}}, .flags = {}, .lists = {}});
  for (const std::string& note : e.notes)
    page.lists["notes"].push_back({.texts = {{"note", note}}, .flags = {}, .lists = {}});
  for (const ex::Remark& remark : e.remarks)
    page.lists["notes"].push_back({.texts = {{"note", ex::remark_words(remark)}}, .flags = {}, .lists = {}});
  page.flags["has_notes"] = !page.lists["notes"].empty();
  return render_page("explain.html", std::move(page));
}

}  // namespace bakeoff::report
