#include "report/html_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/charts.h"
#include "report/html_parts.h"
#include "report/outlook_section.h"
#include "report/phrases.h"
#include "report/published_section.h"
#include "report/ranking.h"
#include "report/svg.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

const char* ink_class(Ink ink) {
  constexpr const char* kClasses[] = {"", "", "", "parity good", "parity bad", "parity warn"};
  return kClasses[static_cast<int>(ink)];
}

// A name that may break after "[" and ",". Escaped.
std::string breakable(std::string_view name) {
  std::string markup;
  while (!name.empty()) {
    const size_t end = std::min(name.find_first_of("[,"), name.size() - 1) + 1;
    markup += (markup.empty() ? "" : "<wbr>") + escape_markup(name.substr(0, end));
    name.remove_prefix(end);
  }
  return markup;
}

// The verdict with the contenders' names set apart. Escaped.
std::string headline_markup(const Summary& s) {
  std::vector<std::string> names;
  for (const Series& series : all_series(s)) names.push_back(series.name);
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  const std::string text = headline(s);
  std::string markup, plain;
  for (size_t at = 0; at < text.size();) {
    const auto name = std::find_if(names.begin(), names.end(), [&](const std::string& n) {
      return !n.empty() && text.compare(at, n.size(), n) == 0;
    });
    if (name == names.end()) {
      plain += text[at++];
      continue;
    }
    markup += escape_markup(plain) + "<span class=\"id\">" + breakable(*name) + "</span>";
    plain.clear();
    at += name->size();
  }
  return markup + escape_markup(plain);
}

View tile(const std::string& value, const std::string& unit, const std::string& label) {
  return {{{"tile_value", value}, {"tile_unit", unit}, {"tile_label", label}}, {}, {}};
}

std::vector<View> tiles(const Summary& s) {
  std::vector<View> out;
  if (!s.ranked.empty()) {
    const Row& leader = s.ranked.front();
    out.push_back(tile(milliseconds(leader.ms_per_step.value), "ms", "a step of the leader"));
    if (leader.samples_per_second > 0)
      out.push_back(tile(count(leader.samples_per_second), "", "samples per second"));
    if (leader.gflops > 0)
      out.push_back(tile(significant(leader.gflops, 3), "GFLOP/s", "of the model's arithmetic"));
  }
  size_t proven = 0;
  for (const auto* rows : {&s.ranked, &s.unranked}) {
    for (const Row& row : *rows) proven += row.parity == ParityState::kPassed;
  }
  out.push_back(tile(fmt::format("{}", proven), fmt::format("of {}", s.ranked.size() + s.unranked.size()),
                     "contenders proven equal to the referee"));
  out.push_back(
      tile(fmt::format("{}", s.heats), s.heats == 1 ? "heat" : "heats",
           s.elapsed_s > 0 ? "of fresh processes, in " + duration(s.elapsed_s * 1e3) : "of fresh processes"));
  out.push_back(tile(percent(s.alpha), "", "error rate of all verdicts and ratios together"));
  return out;
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
             {"cell_range", cell.range},
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

// The ranking, and the table of what a step used and cost.
void add_ranking(const Summary& s, View& page) {
  const std::vector<FilledColumn> all = ranking_columns(s);
  const std::vector<FilledColumn> main = part_of(all, true), used = part_of(all, false);
  page.lists["heads"] = heads(main);
  page.lists["ranked"] = row_views(main, {});
  for (const Series& series : all_series(s)) {
    if (!series.ranked) continue;
    View& row = page.lists["ranked"][static_cast<size_t>(series.index)];
    row.texts["series"] = std::to_string(series.index);
    row.texts["row_class"] = series.cls;
    row.texts["verdict"] = verdict_text(*series.row);
    row.flags["leads"] = series.row == &leader_of(s, *series.row);
  }
  for (const auto& [column, cells] : all) {
    if (column.in_legend) page.lists["ranking_legend"].push_back({{{"legend_line", titled(column)}}, {}, {}});
  }
  page.lists["usage_heads"] = heads(used);
  page.lists["usage"] = row_views(used, {});
  page.flags["has_usage"] = used.size() > 2;
  page.flags["has_not_sampled"] = !s.not_sampled.empty();
  page.texts["not_sampled"] = one_line(fmt::format("{}", fmt::join(s.not_sampled, "; ")));
}

View section_view(const Summary& s, const Section& section) {
  std::vector<FilledColumn> columns = section.columns;
  std::erase_if(columns, [](const FilledColumn& column) { return !column.column.name && blank(column); });
  View v;
  v.texts = {{"section_id", section.key},
             {"section_title", one_line(section.title)},
             {"section_legend", section.legend},
             {"section_next", section.next},
             {"section_command", section.command},
             {"picture_wide", section_chart(s, section.picture, kWide)},
             {"picture_narrow", section_chart(s, section.picture, kNarrow)}};
  v.flags["has_picture"] = !v.texts["picture_wide"].empty();
  for (const std::string& one : section.sentences)
    v.lists["sentences"].push_back({{{"sentence", one}}, {}, {}});
  v.flags["has_next"] = !section.next.empty();
  v.flags["has_command"] = !section.command.empty();
  v.lists["section_heads"] = heads(columns);
  v.lists["section_rows"] = row_views(columns, section.notes);
  for (const Series& series : all_series(s)) {
    for (const Curve& curve : section.picture.curves) {
      if (curve.contender != series.row->contender.id) continue;
      v.lists["picture_legend"].push_back({{{"series", std::to_string(series.index)},
                                            {"legend_class", series.cls},
                                            {"legend_name", series.name}},
                                           {},
                                           {}});
    }
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
  v.texts = {{"row_name", one_line(row.contender.id)},
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

struct Picture {
  const char* id;
  const char* title;
  const char* text;
  Draw draw;
  const char* key;  // of a colour key that the template holds
};

const std::vector<Picture>& pictures() {
  static const std::vector<Picture> all = {
      {"intervals", "How far behind the leader",
       "Step time over the leader's, with intervals that hold for all contenders together. The band is the "
       "margin: inside it a gap does not matter. Contenders of one colour cannot be distinguished; an open "
       "arrow means that the evidence sets no bound on that side yet.",
       interval_chart, "margin_key"},
      {"steps", "Step times",
       "Every timed step, pooled over the heats, with its median and middle half. Dots are the means of the "
       "heats, "
       "one fresh process each: the verdict rests on them, not on the steps.",
       distribution_chart, "steps_key"},
      {"start", "Start-up",
       "What passes before training is under way, as medians over the heats. First step includes "
       "compilation; the "
       "outline is what a cold compilation cache adds.",
       start_up_chart, "start_key"},
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
  for (const Picture& p : pictures()) {
    const std::string wide = p.draw(s, kWide);
    if (wide.empty()) continue;
    out.push_back(chart(p.title, p.id, p.text, wide, p.draw(s, kNarrow)));
    for (const char* key : {"margin_key", "steps_key", "start_key", "roofline_key"}) {
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
  return id == "intervals" ? "Intervals" : id == "roofline" ? "Limits" : chart.texts.at("chart_title");
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
                {"track_class", s.track == "as-is" ? "as-is" : "equalised"},
                {"track_meaning", track_meaning(s)},
                {"headline_markup", headline_markup(s)},
                {"state", s.interrupted ? "interrupted"
                          : s.decided   ? "decided"
                                        : "not fully decided"},
                {"state_class", s.interrupted ? "bad"
                                : s.decided   ? "good"
                                              : "warn"},
                {"margin", percent(s.margin)},
                {"alpha", percent(s.alpha)},
                {"started", one_line(s.manifest.started)},
                {"facts", fmt::format("{}", fmt::join(facts(s), " · "))},
                {"roofline_statement", s.roofline ? roofline_statement(*s.roofline) : ""}};
  page.lists["tiles"] = tiles(s);
  for (const Series& series : all_series(s)) {
    if (!series.ranked) page.lists["unranked"].push_back(unranked_row(*series.row));
  }
  for (const std::string& note : s.notes) page.lists["notes"].push_back({{{"note", one_line(note)}}, {}, {}});
  page.flags = {{"has_ranked", !s.ranked.empty()},
                {"has_unranked", !s.unranked.empty()},
                {"has_notes", !s.notes.empty()},
                {"has_roofline", s.roofline.has_value()},
                {"has_ties", has_ties(s)}};
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
