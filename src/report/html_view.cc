// The page's markup is in templates/page.html, and here are only its values, by the names that the template
// has. The template escapes a value where it writes {{name}}. Where it writes {{{name}}} the value is markup,
// and its parts must have been escaped here, by escape_markup, code_markup or breakable. Everything in a
// record may come from a file that somebody else wrote, so a text that is put there unescaped is a hole.
//
// A page has room for about 14 columns. The ranking keeps those of the highest priority (fold); others move
// to the table of what a step used, and what does not fit there either is listed by name.

#include "report/html_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/texts.h"
#include "records/names.h"
#include "report/charts.h"
#include "report/csv.h"
#include "report/first_view.h"
#include "report/html_parts.h"
#include "report/name_texts.h"
#include "report/outlook_section.h"
#include "report/phrases.h"
#include "report/published_section.h"
#include "report/ranking.h"
#include "report/svg.h"
#include "summary/limits.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

const char* ink_class(Ink ink) {
  constexpr const char* kClasses[] = {"", "", "", "parity good", "parity bad", "parity warn"};
  return kClasses[static_cast<int>(ink)];
}

std::vector<View> heads(const std::vector<FilledColumn>& columns) {
  std::vector<View> out;
  for (const auto& [column, cells] : columns) {
    out.push_back({{{"head_title", column.title}, {"head_meaning", column.meaning}},
                   {{"head_number", !column.left && !column.name}},
                   {}});
  }
  return out;
}

View cell_view(const FilledColumn& column, size_t row) {
  const Cell& cell = column.cells[row];
  const bool numeric = !column.column.left && !column.column.name;
  View v;
  v.texts = {{"cell_title", column.column.title},
             {"cell_markup", column.column.name ? breakable(cell.text) : escape_markup(cell.text)},
             {"cell_range", range_beside(cell)},
             {"cell_class", ink_class(cell.ink)},
             {"cell_hint", cell.hint}};
  v.flags = {{"is_name", column.column.name},
             {"is_number", numeric},
             {"is_strong", numeric && (column.column.priority == 0 || cell.ink == Ink::kBold)},
             {"has_hint", !cell.hint.empty()}};
  return v;
}

// One view a row: list "cells", text "note".
std::vector<View> row_views(const std::vector<FilledColumn>& columns, const std::vector<std::string>& notes) {
  std::vector<View> out(columns.empty() ? 0 : columns.front().cells.size());
  for (size_t row = 0; row < out.size(); ++row) {
    for (const FilledColumn& column : columns) out[row].lists["cells"].push_back(cell_view(column, row));
    const std::string note = row < notes.size() ? notes[row] : "";
    out[row].texts["note"] = one_line(note);
    out[row].flags["has_note"] = !note.empty();
  }
  return out;
}

std::vector<FilledColumn> part_of(const std::vector<FilledColumn>& columns, bool main) {
  std::vector<FilledColumn> out;
  for (const FilledColumn& column : columns) {
    if (column.column.name || ((column.column.part == Part::kMain) == main && !column.column.below_name))
      out.push_back(column);
  }
  return out;
}

// Columns that a page of 1400 pixels has room for, with the settings of contenders.
constexpr size_t kMostOfRanking = 14;
constexpr size_t kMostOfUsage = 15;

// Takes out the columns that matter least, the later of two equal ones, until `most` are left.
std::vector<FilledColumn> fold(std::vector<FilledColumn>& columns, size_t most) {
  std::vector<FilledColumn> out;
  while (columns.size() > most) {
    const auto last = std::max_element(
        columns.rbegin(), columns.rend(),
        [](const FilledColumn& a, const FilledColumn& b) { return a.column.priority < b.column.priority; });
    const auto least = std::prev(last.base());
    if (least->column.priority == 0) break;
    out.insert(out.begin(), std::move(*least));
    columns.erase(least);
  }
  return out;
}

// The ranking's columns with what people call the contenders, and a column for each setting that some row has
// otherwise than its framework's default.
std::vector<FilledColumn> with_settings(const Summary& s, std::vector<FilledColumn> columns) {
  const auto name = std::find_if(columns.begin(), columns.end(), [](const auto& c) { return c.column.name; });
  if (name == columns.end()) return columns;
  std::vector<FilledColumn> settings;
  for (size_t i = 0; i < s.ranked.size(); ++i) {
    const ShownName shown = shown_name(s.ranked[i].contender);
    name->cells[i].text = shown.name;
    name->cells[i].hint = one_line(s.ranked[i].contender.id);
    for (const auto& [setting, value] : shown.settings) {
      auto at = std::find_if(settings.begin(), settings.end(),
                             [&](const FilledColumn& c) { return c.column.title == setting; });
      if (at == settings.end()) {
        settings.push_back(
            {{.title = setting, .meaning = "Setting of the contender; – is the default.", .left = true},
             std::vector<Cell>(s.ranked.size())});
        at = settings.end() - 1;
      }
      at->cells[i].text = value == "true" ? "on" : value == "false" ? "off" : value;
    }
  }
  columns.insert(name + 1, settings.begin(), settings.end());
  return columns;
}

// The ranking, and the table of what a step used and cost.
void add_ranking(const Summary& s, View& page) {
  const std::vector<FilledColumn> all = with_settings(s, ranking_columns(s));
  std::vector<FilledColumn> main = part_of(all, true);
  std::vector<FilledColumn> used = part_of(ranking_columns(s), false);
  const std::vector<FilledColumn> folded = fold(main, kMostOfRanking);
  used.insert(used.end(), folded.begin(), folded.end());
  std::vector<std::string> left_out;
  for (const FilledColumn& column : fold(used, kMostOfUsage)) left_out.push_back(column.column.title);
  page.texts["left_out"] = join(left_out, "; ");
  page.flags["has_left_out"] = !left_out.empty();
  page.lists["heads"] = heads(main);
  page.lists["ranked"] = row_views(main, {});
  for (const Series& series : all_series(s)) {
    if (!series.ranked) continue;
    View& row = page.lists["ranked"][static_cast<size_t>(series.index)];
    row.texts["series"] = std::to_string(series.index);
    row.texts["row_class"] = series.cls;
    row.texts["verdict"] = verdict_text(*series.row);
    row.flags["leads"] = s.refusal.empty() && series.row == &leader_of(s, *series.row);
  }
  for (const auto& [column, cells] : all) {
    if (column.in_legend)
      page.lists["ranking_legend"].push_back({{{"legend_line", code_markup(titled(column))}}, {}, {}});
  }
  page.lists["usage_heads"] = heads(used);
  page.lists["usage"] = row_views(used, {});
  page.flags["has_usage"] = used.size() > 2;
  page.flags["has_not_sampled"] = !s.not_sampled.empty();
  page.texts["not_sampled"] = one_line(join(s.not_sampled, "; "));
}

View section_view(const Summary& s, const Section& section) {
  std::vector<FilledColumn> columns = section.columns;
  std::erase_if(columns, [](const FilledColumn& column) { return !column.column.name && blank(column); });
  View v;
  v.texts = {{"section_id", section.key},
             {"section_title", one_line(section.title)},
             {"section_legend", code_markup(section.legend)},
             {"section_next", code_markup(section.next)},
             {"section_command", section.command}};
  for (const Picture& picture : section.pictures) {
    const std::string wide = section_chart(s, picture, kWide);
    if (wide.empty()) continue;
    v.lists["pictures"].push_back({{{"picture_name", picture.name},
                                    {"picture_wide", wide},
                                    {"picture_narrow", section_chart(s, picture, kNarrow)}},
                                   {},
                                   {}});
  }
  v.flags["has_picture"] = !v.lists["pictures"].empty();
  for (const std::string& one : section.sentences)
    v.lists["sentences"].push_back({{{"sentence", code_markup(one)}}, {}, {}});
  v.flags["has_next"] = !section.next.empty();
  v.flags["has_command"] = !section.command.empty();
  v.lists["section_heads"] = heads(columns);
  v.lists["section_rows"] = row_views(columns, section.notes);
  for (const Series& series : all_series(s)) {
    const bool drawn =
        std::any_of(section.pictures.begin(), section.pictures.end(), [&](const Picture& picture) {
          return std::any_of(picture.curves.begin(), picture.curves.end(),
                             [&](const Curve& curve) { return curve.contender == series.row->contender.id; });
        });
    if (!drawn) continue;
    v.lists["picture_legend"].push_back({{{"series", std::to_string(series.index)},
                                          {"legend_class", series.cls},
                                          {"legend_name", series.name}},
                                         {},
                                         {}});
  }
  return v;
}

// Lists "outlook" (what is open), "sections" (the studies) and "published" (at most one), and what the
// navigation calls them.
void add_sections(const Summary& s, View& page) {
  for (const Section& section : outlook_sections(s))
    page.lists["outlook"].push_back(section_view(s, section));
  for (const Section& section : sections_of(s)) {
    if (section.rows() == 0) continue;
    page.lists[section.key == "published" ? "published" : "sections"].push_back(section_view(s, section));
    if (section.key != "published")
      page.lists["section_nav"].push_back({{{"nav_id", section.key}, {"nav_label", section.label}}, {}, {}});
  }
}

View unranked_row(const Row& row) {
  View v;
  const std::string log = row.failure ? clean(row.failure->log_tail) : "";
  v.texts = {{"row_name", label(row.contender)},
             {"row_id", one_line(row.contender.id)},
             {"reason", unranked_reason(row, false)},
             {"log", log},
             {"stage", std::string(name(row.failure ? row.failure->stage : Stage::kParity))}};
  v.flags = {{"has_log", !last_lines(log, 1).empty()}};
  return v;
}

View chart(const std::string& title, const std::string& id, const std::string& text, const std::string& wide,
           const std::string& narrow) {
  View v;
  v.texts = {
      {"chart_title", title}, {"chart_id", id}, {"chart_text", text}, {"wide", wide}, {"narrow", narrow}};
  return v;
}

using Draw = std::string (*)(const Summary&, double);

struct PageChart {
  const char* id;
  const char* title;
  const char* text;
  Draw draw;
  const char* key;  // of a colour key that the template holds
};

const std::vector<PageChart>& pictures() {
  static const std::vector<PageChart> all = {
      {"intervals", "How far behind the leader",
       "Step time over the leader's, with intervals that hold for all contenders together. The band is the "
       "margin: inside it a gap does not matter. An open arrow means that the evidence sets no bound on that side "
       "yet.",
       interval_chart, "margin_key"},
      {"steps", "Step times",
       "Every timed step, pooled over the heats, with its median and middle half. Dots are the means of the "
       "heats, "
       "one fresh process each: the verdict rests on them, not on the steps.",
       distribution_chart, "steps_key"},
      {"phases", "Where the time of a step goes",
       "A step's time, by shares that were recorded while it raced: the model's arithmetic, had it run at the peak "
       "that was measured for its threads; what its threads computed beyond that (kernels below the peak, copies, the "
       "framework's own work), or all that they computed where the peak is not known; threads that had nothing to do; and the wait for a batch. Forward, backward and update "
       "are timed apart by bakeoff explain.",
       phases_chart, "phases_key"},
      {"start", "Start-up",
       "What passes before the steps are under way, as medians over the heats. First step includes "
       "compilation; the "
       "outline is what a cold compilation cache adds.",
       start_up_chart, "start_key"},
      {"memory", "Memory during the bursts",
       "Resident memory during the bursts, by kind. Weights, gradients and optimizer state follow from the recipe; "
       "what the process held before its first step, and what steps added to it, was measured.",
       memory_chart, "memory_key"},
      {"roofline", "Distance from the machine's limits",
       "The model's arithmetic per second against its arithmetic per byte that its ops move. No contender "
       "can be "
       "above the flat line, the measured peak of the processor; the sloped lines are the measured "
       "bandwidths of "
       "the memory levels. Marks below are the kinds of layers of the workload: those left of the kink wait "
       "for "
       "memory.",
       roofline_chart, "roofline_key"},
  };
  return all;
}

std::vector<View> charts(const Summary& s) {
  std::vector<View> out;
  for (const PageChart& p : pictures()) {
    const std::string wide = p.draw(s, kWide);
    if (wide.empty()) continue;
    out.push_back(chart(p.title, p.id, p.text, wide, p.draw(s, kNarrow)));
    for (const char* key :
         {"margin_key", "steps_key", "phases_key", "start_key", "memory_key", "roofline_key"}) {
      out.back().flags[key] = std::string(key) == p.key;
    }
  }
  return out;
}

void tabbed_charts(const Summary& s, View& page) {
  const auto add = [&](const char* key, std::vector<View> tabs) {
    std::erase_if(tabs, [](const View& v) { return v.texts.at("wide").empty(); });
    page.flags[std::string("has_") + key] = !tabs.empty();
    page.lists[key] = std::move(tabs);
  };
  const auto total = [&](bool relative) {
    return chart(relative ? "Relative to the leader" : "Total time", relative ? "total-rel" : "total-abs", "",
                 total_time_chart(s, kWide, relative), total_time_chart(s, kNarrow, relative));
  };
  add("total_tabs", {total(false), total(true)});
  add("loss_tabs", {chart("Difference from the referee", "loss-diff", "", loss_error_chart(s, kWide),
                          loss_error_chart(s, kNarrow)),
                    chart("Losses", "loss-abs", "", loss_chart(s, kWide), loss_chart(s, kNarrow))});
}

std::vector<View> legend(const Summary& s, bool losses) {
  std::vector<View> out;
  for (const Series& series : all_series(s)) {
    const bool shown = losses ? series.row->proof && !series.row->proof->losses.empty() : series.ranked;
    if (!shown) continue;
    out.push_back({{{"series", std::to_string(series.index)},
                    {"legend_class", series.cls},
                    {"legend_name", series.name}},
                   {},
                   {}});
  }
  return out;
}

// A chart's title, or less where that is long.
std::string nav_label(const View& chart) {
  const std::string& id = chart.texts.at("chart_id");
  return id == "intervals"  ? "Intervals"
         : id == "roofline" ? "Limits"
         : id == "memory"   ? "Memory"
                            : chart.texts.at("chart_title");
}

void navigation(View& page) {
  const auto add = [&](const char* id, const char* label, bool shown) {
    if (shown) page.lists["nav"].push_back({{{"nav_id", id}, {"nav_label", label}}, {}, {}});
  };
  add("outlook", "Open", !page.lists["outlook"].empty());
  add("table", "Table", page.flags["has_ranked"]);
  add("unranked", "Not ranked", page.flags["has_unranked"]);
  for (const View& v : page.lists["charts"]) {
    page.lists["nav"].push_back({{{"nav_id", v.texts.at("chart_id")}, {"nav_label", nav_label(v)}}, {}, {}});
  }
  for (const View& v : page.lists["section_nav"]) page.lists["nav"].push_back(v);
  add("total", "Total time", page.flags["has_total_tabs"]);
  add("losses", "Losses", page.flags["has_loss_tabs"]);
  add("usage", "Resources", page.flags["has_usage"]);
  add("variance", "Variance", page.flags["has_variance"]);
  add("parity", "Parity", page.flags["has_parity"]);
  add("fairness", "Fairness", page.flags["has_fairness"]);
  add("settings", "Settings", page.flags["has_settings"]);
  add("host", "Host", true);
  add("sources", "Sources", page.flags["has_sources"]);
}

}  // namespace

View page_view(const Summary& s, bool sources) {
  View page;
  page.texts = {{"title", s.title.empty() ? "untitled" : one_line(s.title)},
                {"track", track_label(s)},
                {"track_class", ir::name(s.track)},
                {"track_meaning", track_meaning(s)},
                {"headline", headline(s)},
                {"margin", percent(s.margin)},
                {"alpha", percent(s.alpha)},
                {"started", one_line(s.manifest.started)},
                {"facts", join(facts(s), " · ")},
                {"roofline_statement", s.roofline ? roofline_statement(*s.roofline) : ""}};
  for (const Series& series : all_series(s)) {
    if (!series.ranked) page.lists["unranked"].push_back(unranked_row(*series.row));
  }
  for (const std::string& note : s.notes)
    page.lists["notes"].push_back({{{"note_markup", code_markup(one_line(note))}}, {}, {}});
  page.flags = {{"has_ranked", !s.ranked.empty()},        {"has_unranked", !s.unranked.empty()},
                {"has_notes", !s.notes.empty()},          {"has_roofline", s.roofline.has_value()},
                {"has_native", native_row(s) != nullptr}, {"has_ties", has_ties(s)}};
  add_first_screen(s, sources, page);
  add_ranking(s, page);
  add_sections(s, page);
  page.flags["has_variance"] = s.variance.has_value();
  if (s.variance) {
    page.texts["variance_sentence"] = one_line(s.variance->sentence);
    for (const VariancePart& part : variance_parts(*s.variance)) {
      page.lists["variance"].push_back(
          {{{"part", part.what}, {"part_sd", part.sd}, {"part_meaning", part.meaning}}, {}, {}});
    }
  }
  page.lists["charts"] = charts(s);
  tabbed_charts(s, page);
  page.lists["total_legend"] = legend(s, false);
  page.lists["loss_legend"] = legend(s, true);
  add_parity(s, page);
  add_fairness(s, page);
  add_settings(s, page);
  add_host(s, page);
  add_texts(s, sources, page);
  navigation(page);
  return page;
}

}  // namespace bakeoff::report
