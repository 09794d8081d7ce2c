#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "records/names.h"
#include "report/first_screen.h"
#include "report/layout.h"
#include "report/outlook_section.h"
#include "report/phrases.h"
#include "report/published_section.h"
#include "report/ranking.h"
#include "report/terminal_bars.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr int kLeastWidth = 40;

// Every line painted for itself, so that a pager keeps the colour.
std::string painted_lines(const std::string& text, Ink ink, bool colour) {
  std::string out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += paint(text.substr(at, end - at), ink, colour) + '\n';
    at = end + 1;
  }
  return out;
}

class Screen {
 public:
  Screen(const Summary& summary, const TerminalOptions& options)
      : s_(summary), options_(options), width_(std::max(options.width, kLeastWidth)) {}

  std::string render() {
    header();
    first();
    in_detail();
    for (const Section& section : outlook_sections(s_)) {
      below(section);
      line();
    }
    table();
    legend();
    for (const Section& section : sections_of(s_)) below(section);
    variance();
    unranked();
    notes();
    return std::move(out_);
  }

 private:
  void line(const std::string& text = "", Ink ink = Ink::kPlain) {
    out_ += paint(text, ink, options_.colour) + '\n';
  }
  void lines(const std::string& text, Ink ink, std::string_view first = "", std::string_view next = "") {
    out_ += painted_lines(paragraph(text, width_, first, next), ink, options_.colour);
  }

  void header() {
    std::string title = "Bakeoff";
    if (!s_.title.empty()) title += " · " + one_line(s_.title);
    lines(title + " · " + track_label(s_), Ink::kBold);
    lines(join(first_.what.begin() + 1, first_.what.end(), " · "), Ink::kDim);
    line();
    lines(first_.answer, s_.decided ? Ink::kGood : Ink::kBold);
    if (!first_.rest.empty()) lines(first_.rest, Ink::kPlain);
    line();
  }

  // Every contender with its throughput as a bar; then what to do, and what to doubt.
  void first() {
    for (const std::string& row : bars(first_, width_, options_.colour)) out_ += row + '\n';
    if (!first_.rows.empty()) line();
    if (!first_.confidence.empty()) lines(first_.confidence, Ink::kDim);
    if (!first_.confidence.empty()) line();
    if (!first_.fastest_script.empty())
      lines(
          fmt::format("{}: {}",
                      s_.decided && s_.unsteady.empty() ? "The fastest script" : "The fastest script so far",
                      script_path()),
          Ink::kPlain, "  ", "    ");
    for (const Doubt& doubt : first_.doubts) {
      const std::string text = doubt.text.empty() ? doubt.title : doubt.title + ": " + doubt.text;
      lines(text, doubt.good ? Ink::kPlain : Ink::kWarn, "  ", "    ");
      if (!doubt.command.empty() && doubt.good == false) command(doubt.command);
    }
    line();
  }

  std::string script_path() const {
    return s_.run.empty() ? first_.fastest_script : s_.run + "/scripts/" + first_.fastest_script;
  }

  void in_detail() {
    line("In detail", Ink::kBold);
    lines(join(facts(s_), " · "), Ink::kDim);
    lines(headline(s_), Ink::kPlain);
    line();
  }

  void table() {
    if (s_.ranked.empty()) return;
    columns_ = choose_columns(ranking_columns(s_), width_);
    for (const std::string& row : layout(columns_, width_, options_.colour)) out_ += row + '\n';
  }

  void legend() {
    if (s_.ranked.empty()) return;
    line();
    lines(fmt::format("Ratio: step time over the leader's ({}).", error_statement(s_)), Ink::kDim);
    for (const auto& [column, cells] : columns_) {
      if (column.in_legend) lines(titled(column), Ink::kDim);
      if (column.key == "share_of_peak" && s_.roofline) lines(roofline_statement(*s_.roofline), Ink::kDim);
    }
  }

  // A table below the ranking, with notes on its rows and a legend.
  void below(const Section& section) {
    if (section.columns.empty() || section.rows() == 0) return;
    if (!out_.ends_with("\n\n")) line();
    lines(section.title, Ink::kBold);
    for (const std::string& one : section.sentences) lines(one, Ink::kPlain, "  · ", "    ");
    for (const std::string& row : layout(choose_columns(section.columns, width_), width_, options_.colour))
      out_ += row + '\n';
    for (size_t i = 0; i < section.notes.size(); ++i) {
      if (!section.notes[i].empty())
        lines(section.row_names[i] + ": " + section.notes[i], Ink::kWarn, "  · ", "    ");
    }
    line();
    lines(section.legend, Ink::kDim);
    if (section.next.empty()) return;
    line();
    lines(section.next, Ink::kBold);
    if (!section.command.empty()) command(section.command);
  }

  // To be copied: where it is broken the shell goes on.
  void command(const std::string& text) {
    const std::vector<std::string> parts = wrap(text, width_ - 6);
    for (size_t i = 0; i < parts.size(); ++i)
      line((i == 0 ? "  " : "    ") + parts[i] + (i + 1 < parts.size() ? " \\" : ""));
  }

  void variance() {
    if (!s_.variance) return;
    line();
    line("Where the variance is", Ink::kBold);
    lines(one_line(s_.variance->sentence), Ink::kPlain, "  ", "  ");
    std::vector<std::string> parts;
    for (const VariancePart& part : variance_parts(*s_.variance)) parts.push_back(part.what + " " + part.sd);
    lines(join(parts, " · "), Ink::kDim, "  ", "  ");
  }

  void unranked() {
    if (s_.unranked.empty()) return;
    line();
    line("Not ranked", Ink::kBold);
    for (const Row& row : s_.unranked) {
      const std::string name = label(row.contender);
      lines(name + ": " + unranked_reason(row), Ink::kBad, "  ✗ ", "    ");
      if (!row.failure) continue;
      for (const std::string& log : last_lines(clean(row.failure->log_tail), options_.log_lines)) {
        std::string flat;
        for (const char c : log) flat += c == '\t' ? "    " : std::string(1, c);
        line(fit("    │ " + flat, width_), Ink::kDim);
      }
    }
  }

  void notes() {
    if (s_.notes.empty()) return;
    line();
    line("Notes", Ink::kBold);
    for (const std::string& note : s_.notes) lines(one_line(note), Ink::kPlain, "  · ", "    ");
  }

  const Summary& s_;
  const TerminalOptions& options_;
  int width_;
  FirstScreen first_ = first_screen(s_, s_.run);
  std::vector<FilledColumn> columns_ = {};  // of the ranking, as many as fit
  std::string out_;
};

}  // namespace

std::string render_terminal(const Summary& summary, const TerminalOptions& options) {
  return Screen(summary, options).render();
}

}  // namespace bakeoff::report
