// Every format is made of the same sections: what the study compared, one table for each row, the shares of the
// confounds, and the confounds in words. A share may be negative, which table::interval takes for an open end, so
// shares have a text of their own here.

#include "report/reproduction_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "base/texts.h"
#include "base/version.h"
#include "records/names.h"
#include "report/layout.h"
#include "report/page.h"
#include "report/svg.h"
#include "report/view.h"
#include "suite/suite_run.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using suite::GapShare;
using suite::Order;
using suite::ReplayedLine;
using suite::ReplayedRow;
using suite::Reproduction;

constexpr int kLeastWidth = 40;

std::string name_in(const Reproduction& r, const std::string& id) {
  for (const ReplayedRow& row : r.rows) {
    for (const Contender& one : row.contenders)
      if (one.id == id) return spoken(one);
  }
  return one_line(id);
}

std::string share_end(double value, const char* open) {
  return std::isfinite(value) ? fmt::format("{:.0f}%", 100 * value) : open;
}

std::string share_range(const Estimate& share) {
  if (!std::isfinite(share.low) && !std::isfinite(share.high)) return kNone;
  return fmt::format("{}{}, {}{}", std::isfinite(share.low) ? "[" : "(", share_end(share.low, "−∞"),
                     share_end(share.high, "∞"), std::isfinite(share.high) ? "]" : ")");
}

Cell here_cell(const ReplayedLine& line) {
  if (!line.today) return {kNone, "", Ink::kDim, one_line(line.note)};
  if (line.today->bound) {
    const bool least = line.today->ratio.value > 1;
    return {(least ? "≥ " : "≤ ") + ratio(least ? line.today->ratio.low : line.today->ratio.high)};
  }
  return {ratio(line.today->ratio.value), interval(line.today->ratio, ratio)};
}

Cell order_cell(const ReplayedLine& line) {
  const Ink ink = line.order == Order::kAgrees     ? Ink::kGood
                  : line.order == Order::kReversed ? Ink::kBad
                  : line.order == Order::kNotRaced ? Ink::kDim
                                                   : Ink::kPlain;
  return {word(line.order), "", ink};
}

std::vector<std::string> said_of_row(const ReplayedRow& row) {
  std::vector<std::string> all;
  if (!row.row.instead.empty())
    all.push_back("In place of the study's network: " + one_line(row.row.instead) + ".");
  if (!row.failure.empty()) all.push_back("Not raced: " + one_line(row.failure) + ".");
  if (!row.refusal.empty()) all.push_back("No verdict: " + one_line(row.refusal) + ".");
  if (!row.rest.empty()) all.push_back(with_names(row.contenders, row.rest));
  for (const ReplayedLine& line : row.lines)
    if (!line.note.empty()) all.push_back(with_names(row.contenders, one_line(line.note)) + ".");
  return all;
}

// The lines of one row over one of its references; what is said of the row stands above the first.
Section section_of_row(const Reproduction& r, const ReplayedRow& row, const std::string& reference) {
  Section out{.title = one_line(row.row.name) + ", against " + name_in(r, reference)};
  if (row.raced() && !row.title.empty())
    out.title += fmt::format(" · {} · {} track", one_line(row.title),
                             row.track == ir::Track::kAsIs ? "as-is" : "equalised");
  if (!row.folder.empty()) out.command = row.folder + "/report.html";  // the page links there
  if (reference == row.row.references.front()) out.sentences = said_of_row(row);
  FilledColumn names{{.title = "contender", .left = true, .name = true}, {}},
      published{{.title = "published"}, {}}, here{{.title = "here", .range_title = "interval"}, {}},
      order{{.title = "order", .left = true}, {}};
  for (const ReplayedLine& line : row.lines) {
    if (line.reference != reference) continue;
    out.row_names.push_back(name_in(r, line.contender));
    names.cells.push_back({out.row_names.back(), "", Ink::kPlain, one_line(line.contender)});
    published.cells.push_back({line.published ? ratio(*line.published) : kNone});
    here.cells.push_back(here_cell(line));
    order.cells.push_back(order_cell(line));
  }
  out.columns = {names, published};
  if (row.raced()) out.columns.insert(out.columns.end(), {here, order});
  return out;
}

// What the study compared, without a table.
Section about(const Reproduction& r) {
  Section out{.title = "What the study compared", .sentences = r.study.compared};
  out.legend = "Published: " + one_line(r.study.source);
  if (!r.study.gpu.empty()) out.legend += ", on " + one_line(r.study.gpu);
  out.legend += ". Figures are " + one_line(r.study.unit) + ".";
  for (std::string& sentence : out.sentences) sentence = one_line(sentence);
  return out;
}

// Below such a table: the shares of which at least one end is certain.
Section shares_of(const Reproduction& r, const ReplayedRow& row, const std::string& reference) {
  Section out{.title = fmt::format("{}: what settings explain of the gaps to {} here", one_line(row.row.name),
                                   name_in(r, reference))};
  FilledColumn names{{.title = "contender", .left = true, .name = true}, {}},
      what{{.title = "switched", .left = true}, {}}, share{{.title = "share", .range_title = "interval"}, {}};
  for (const ReplayedLine& line : row.lines) {
    for (const GapShare& one : line.shares) {
      if (line.reference != reference || !one.known()) continue;
      const char* const whose = one.contender == line.contender ? "" : "reference: ";
      out.row_names.push_back(name_in(r, line.contender));
      names.cells.push_back({out.row_names.back()});
      what.cells.push_back({fmt::format("{}{} → {}", whose, one.setting, one.to), "", Ink::kPlain,
                            fmt::format("{}: {} in place of {}", one_line(one.confound), one.to, one.from)});
      share.cells.push_back({fmt::format("{:.0f}%", 100 * one.share.value), share_range(one.share)});
    }
  }
  out.columns = {names, what, share};
  return out;
}

Section confounds_section(const Reproduction& r) {
  Section out{.title = "What confounds the study"};
  for (const recipe::Confound& one : r.study.confounds) {
    const std::string why = suite::why_no_share(r, one);
    out.sentences.push_back(one_line(one.name + ": " + one.what) + " " +
                            (why.empty() ? fmt::format("Shares above: {}.", join(one.settings, ", "))
                                         : fmt::format("No share here: {}.", one_line(why))));
  }
  double alpha = 0, margin = 0;
  for (const ReplayedRow& row : r.rows)
    alpha = std::max(alpha, row.alpha), margin = std::max(margin, row.margin);
  out.legend = fmt::format(
      "Ratios are times as long as the reference. Published figures: {}; here: steady step times.",
      one_line(r.study.unit));
  if (alpha > 0)
    out.legend += fmt::format(
        " The intervals of all pairs of a race hold together (error rate {}, margin {}), and those of shares wherever "
        "these do. Share: the log ratio that the switch takes away, over that of the gap. 100%: without the difference "
        "there is no gap; above, the order turns; below 0%, the gap grows. From contenders of one race that differ in "
        "that setting alone; shares need not add up.",
        percent(alpha), percent(margin));
  return out;
}

std::vector<Section> sections_of_study(const Reproduction& r) {
  std::vector<Section> all = {about(r)};
  for (const ReplayedRow& row : r.rows) {
    if (!row.asked) continue;
    for (const std::string& reference : row.row.references) {
      for (Section section : {section_of_row(r, row, reference), shares_of(r, row, reference)})
        if (section.rows() > 0) all.push_back(std::move(section));
    }
  }
  all.push_back(confounds_section(r));
  for (size_t i = 0; i < all.size(); ++i) all[i].key = fmt::format("section-{}", i + 1);
  return all;
}

// A paragraph whose lines are painted alike.
std::string lines_of_text(const std::string& text, const TerminalOptions& o, Ink ink,
                          std::string_view first = "", std::string_view rest = "") {
  std::string out;
  for (const std::string& line : lines_of(paragraph(text, std::max(o.width, kLeastWidth), first, rest)))
    out += paint(line, ink, o.colour) + '\n';
  return out;
}

Json json_of(const GapShare& one) {
  return {{"confound", one.confound},
          {"setting", one.setting},
          {"of", one.contender},
          {"from", one.from},
          {"to", one.to},
          {"share",
           {{"value", number(one.share.value)},
            {"low", number(one.share.low)},
            {"high", number(one.share.high)}}}};
}

Json json_of(const ReplayedLine& line) {
  Json shares = Json::array();
  for (const GapShare& one : line.shares) shares.push_back(json_of(one));
  return {{"contender", line.contender},
          {"reference", line.reference},
          {"published", number(line.published)},
          {"here", line.today ? estimate(line.today->ratio) : Json(nullptr)},
          {"order", word(line.order)},
          {"note", text_or_null(line.note)},
          {"shares", shares}};
}

View view_of(const Section& section) {
  View v;
  v.texts = {
      {"section_id", section.key}, {"section_title", section.title}, {"section_legend", section.legend}};
  v.flags = {{"no_table", section.columns.empty()},
             {"has_remarks", !section.sentences.empty()},
             {"has_picture", false}};
  for (size_t c = 0; c < section.columns.size(); ++c)
    v.lists["heads"].push_back({{{"name", section.columns[c].column.title}, {"link", section.command}},
                                {{"is_number", c > 0}, {"has_link", c == 0 && !section.command.empty()}},
                                {}});
  for (size_t row = 0; row < section.rows() && !section.columns.empty(); ++row) {
    View line;
    line.texts = {{"name", section.columns.front().cells[row].text},
                  {"hint", section.columns.front().cells[row].hint}};
    line.flags = {{"is_foot", false}, {"has_link", false}};
    for (size_t c = 1; c < section.columns.size(); ++c) {
      const Cell& cell = section.columns[c].cells[row];
      const char* const ink = cell.ink == Ink::kGood ? "fast" : cell.ink == Ink::kBad ? "none" : "";
      line.lists["cells"].push_back({{{"cell_title", section.columns[c].column.title},
                                      {"cell_markup", escape_markup(cell.text)},
                                      {"cell_range", cell.range},
                                      {"cell_hint", cell.hint},
                                      {"cell_class", ink},
                                      {"heat", ""}},
                                     {{"has_hint", !cell.hint.empty()}},
                                     {}});
    }
    v.lists["lines"].push_back(std::move(line));
  }
  for (const std::string& sentence : section.sentences)
    v.lists["remarks"].push_back({{{"remark", sentence}}, {}, {}});
  return v;
}

std::vector<View> study_tiles(const Reproduction& r) {
  int raced = 0, agrees = 0, reversed = 0, judged = 0;
  for (const ReplayedRow& row : r.rows) {
    raced += row.raced();
    for (const ReplayedLine& line : row.lines) {
      agrees += line.order == Order::kAgrees;
      reversed += line.order == Order::kReversed;
      judged += line.published && row.raced();
    }
  }
  const auto tile = [](const std::string& value, const char* label) {
    return View{{{"tile_value", value}, {"tile_label", label}}, {}, {}};
  };
  return {tile(fmt::format("{} of {}", raced, r.rows.size()), "rows raced"),
          tile(fmt::format("{} of {}", agrees, judged), "published orders agree"),
          tile(fmt::format("{}", reversed), "are reversed; the rest is not certain")};
}

}  // namespace

std::string render_terminal(const Reproduction& r, const TerminalOptions& o) {
  const int width = std::max(o.width, kLeastWidth);
  std::string out =
      lines_of_text(one_line(suite::headline(r)), o, suite::replicates(r) ? Ink::kGood : Ink::kWarn);
  if (r.interrupted) out += lines_of_text("Interrupted: what is known so far.", o, Ink::kWarn);
  out += '\n' + lines_of_text("Bakeoff · " + one_line(r.study.title), o, Ink::kBold);
  for (const Section& section : sections_of_study(r)) {
    if (section.columns.empty() && section.sentences.empty()) continue;
    out += '\n' + lines_of_text(section.title, o, Ink::kBold);
    for (const std::string& sentence : section.sentences)
      out += lines_of_text(sentence, o, Ink::kPlain, "  · ", "    ");
    if (!section.columns.empty()) {
      for (const std::string& line : layout(choose_columns(section.columns, width), width, o.colour))
        out += line + '\n';
    }
    if (!section.legend.empty()) out += lines_of_text(section.legend, o, Ink::kDim);
  }
  return out + '\n';
}

std::string render_json(const Reproduction& r) {
  Json rows = Json::array(), confounds = Json::array();
  for (const ReplayedRow& row : r.rows) {
    Json lines = Json::array();
    for (const ReplayedLine& line : row.lines) lines.push_back(json_of(line));
    rows.push_back({{"row", row.row.name},
                    {"recipe", text_or_null(row.row.recipe.string())},
                    {"run", text_or_null(row.folder)},
                    {"track", row.contenders.empty()          ? Json(nullptr)
                              : row.track == ir::Track::kAsIs ? Json("as-is")
                                                              : Json("equalised")},
                    {"instead", text_or_null(row.row.instead)},
                    {"on_gpu", row.gpu},
                    {"why_not_raced", text_or_null(row.failure)},
                    {"refusal", text_or_null(row.refusal)},
                    {"contenders", lines}});
  }
  for (const recipe::Confound& one : r.study.confounds)
    confounds.push_back({{"name", one.name},
                         {"what", one.what},
                         {"why_no_share", text_or_null(suite::why_no_share(r, one))}});
  const Json out = {{"schema", 1},
                    {"tool", "bakeoff"},
                    {"version", kVersion},
                    {"study", r.study.name},
                    {"title", r.study.title},
                    {"source", r.study.source},
                    {"headline", suite::headline(r)},
                    {"replication", suite::replicates(r)},
                    {"interrupted", r.interrupted},
                    {"compared", r.study.compared},
                    {"rows", rows},
                    {"confounds", confounds}};
  return dump(out, 2) + '\n';
}

std::string render_reproduction_page(const Reproduction& r) {
  View page;
  page.texts = {{"title", "reproduce " + one_line(r.study.name)},
                {"headline", one_line(suite::headline(r))},
                {"state", r.interrupted          ? "interrupted"
                          : suite::replicates(r) ? "replication"
                                                 : "no replication"},
                {"state_class", suite::replicates(r) && !r.interrupted ? "good" : "warn"}};
  page.flags["has_missing"] = false;
  page.lists["tiles"] = study_tiles(r);
  for (const Section& section : sections_of_study(r)) {
    if (!section.columns.empty() || !section.sentences.empty())
      page.lists["sections"].push_back(view_of(section));
  }
  return render_page("suite.html", std::move(page));
}

std::string list_of_studies(const std::vector<recipe::PublishedStudy>& studies, const TerminalOptions& o) {
  std::string out;
  for (const recipe::PublishedStudy& study : studies) {
    const auto raced = std::ranges::count_if(study.rows, [](const auto& row) { return row.why_not.empty(); });
    out += lines_of_text(study.name, o, Ink::kBold);
    out += lines_of_text(one_line(study.title) + ". Rows that can be raced here: " +
                             fmt::format("{} of {}.", raced, study.rows.size()),
                         o, Ink::kPlain, "  ", "  ");
    for (const std::string& one : study.compared)
      out += lines_of_text(one_line(one), o, Ink::kDim, "  · ", "    ");
    out += lines_of_text("Published: " + one_line(study.source), o, Ink::kDim, "  ", "  ") + '\n';
  }
  return out;
}

std::string plan_of(const recipe::PublishedStudy& study, const suite::Record& record,
                    const TerminalOptions& o) {
  std::string out;
  for (const recipe::StudyRow& row : study.rows) {
    out += lines_of_text(one_line(row.name), o, Ink::kBold);
    const auto entry = std::ranges::find(record.entries, row.name, &suite::Entry::name);
    const bool raced = entry != record.entries.end() && entry->open();
    const auto recipe = raced ? suite::recipe_of_suite(entry->recipe, record.every, entry->with)
                              : Result<recipe::Recipe>(Error{.message = "not raced"});
    if (!raced || !recipe) {
      const std::string why = !row.why_not.empty()            ? row.why_not
                              : entry == record.entries.end() ? "is not among the rows asked for"
                                                              : entry->failure;
      out += lines_of_text("not raced: " + one_line(why), o, Ink::kDim, "  ", "    ");
      continue;
    }
    std::vector<std::string> ids;
    for (const auto& contender : recipe->contenders) ids.push_back(contender.id);
    out +=
        lines_of_text(fmt::format("{}, batch {}: {}", entry->recipe, recipe->training.batch, join(ids, ", ")),
                      o, Ink::kPlain, "  ", "    ");
    if (!row.instead.empty())
      out += lines_of_text("in place of the study's network: " + one_line(row.instead), o, Ink::kDim, "  ",
                           "    ");
  }
  return out;
}

}  // namespace bakeoff::report
