#include "report/terminal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "report/beside.h"
#include "report/cells.h"
#include "report/fit_view.h"
#include "report/largest_view.h"
#include "report/latency_view.h"
#include "table/numbers.h"
#include "report/search_view.h"
#include "report/table.h"
#include "report/target_view.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr int kLeastWidth = 40;

Ink parity_ink(ParityState state) {
  switch (state) {
    case ParityState::kPassed:
      return Ink::kGood;
    case ParityState::kReported:
      return Ink::kWarn;
    case ParityState::kFailed:
      return Ink::kBad;
    case ParityState::kNotRun:
      break;
  }
  return Ink::kDim;
}

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
    table();
    legend();
    published();
    whole_training();
    target();
    latency();
    search();
    largest();
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
    lines(fmt::format("{}", fmt::join(facts(s_), " · ")), Ink::kDim);
    line();
    lines(headline(s_), s_.decided ? Ink::kGood : Ink::kBold);
    line();
  }

  void table() {
    if (s_.ranked.empty()) return;
    std::vector<Cells> rows;
    for (const Row& row : s_.ranked) {
      rows.push_back(cells(s_, row));
      fill_usage(s_, row, rows.back());
    }
    std::vector<Column> columns;
    const auto add = [&](std::string title, int priority, bool left,
                         const std::function<Cell(size_t)>& cell) {
      Column column{std::move(title), priority, left, {}};
      for (size_t i = 0; i < rows.size(); ++i) column.cells.push_back(cell(i));
      columns.push_back(std::move(column));
    };
    const auto text = [&](std::string Cells::*field, Ink ink = Ink::kPlain) {
      return [&rows, field, ink](size_t i) { return Cell{rows[i].*field, ink}; };
    };
    add("rank", 0, false, text(&Cells::rank));
    add("contender", 0, true, [&](size_t i) {
      return Cell{rows[i].name, i == 0 ? Ink::kBold : Ink::kPlain};
    });
    columns.back().wraps = true;
    add("precision", 1, true, text(&Cells::group));
    if (has_ties(s_)) add("tie", 4, true, text(&Cells::ties, Ink::kDim));
    add("ms/step", 0, false, text(&Cells::ms));
    add("interval", 6, true, text(&Cells::ms_interval, Ink::kDim));
    add("ratio", 0, false, text(&Cells::ratio));
    add("interval", 1, true, text(&Cells::ratio_interval, Ink::kDim));
    add("verdict", 7, true, text(&Cells::verdict));
    add("samples/s", 5, false, text(&Cells::rate));
    add("GFLOP/s", kLuxury + 1, false, text(&Cells::gflops, Ink::kDim));
    add("of peak", 11, false, text(&Cells::flop_use, Ink::kDim));
    add("of bandwidth", 12, false, text(&Cells::byte_use, Ink::kDim));
    add("first step", 2, false, text(&Cells::first_step));
    add("cold", 8, false, text(&Cells::first_step_cold));
    add("to the device", 8, false, text(&Cells::transfer));
    add("from float32", 2, false, text(&Cells::distance, Ink::kDim));
    add("wait", 9, false, text(&Cells::wait, Ink::kDim));
    add("start-up", kLuxury, false, text(&Cells::start));
    add("break-even", 9, true, text(&Cells::break_even));
    add("peak memory", 10, false, text(&Cells::memory));
    add("a sample", kLuxury + 2, false, text(&Cells::sample_memory, Ink::kDim));
    add("price/epoch", kLuxury, false, text(&Cells::price));
    add("J/sample", kLuxury, false, text(&Cells::energy));
    add("samples/J", kLuxury, false, text(&Cells::per_joule));
    add("samples/" + (s_.currency.empty() ? "unit" : one_line(s_.currency)), kLuxury + 1, false,
        text(&Cells::per_unit));
    add("CO2/epoch", kLuxury + 1, false, text(&Cells::co2));
    add("CPUs busy", kLuxury + 2, false, text(&Cells::cores, Ink::kDim));
    add("faults/step", kLuxury + 3, false, text(&Cells::faults, Ink::kDim));
    add("switches/step", kLuxury + 3, false, text(&Cells::switches, Ink::kDim));
    parity_column(columns, rows);
    columns = choose_columns(std::move(columns), width_);
    for (const Column& column : columns) shown_.insert(column.title);
    for (const std::string& row : layout(columns, width_, options_.colour)) out_ += row + '\n';
  }

  // The mark alone where there is no room for the word.
  void parity_column(std::vector<Column>& columns, const std::vector<Cells>& rows) {
    const bool wide = width_ >= 120;
    Column column{"parity", 3, true, {}};
    for (size_t i = 0; i < rows.size(); ++i) {
      const ParityState state = s_.ranked[i].parity;
      column.cells.push_back({wide ? rows[i].parity : parity_mark(state), parity_ink(state)});
    }
    columns.push_back(std::move(column));
  }

  void legend() {
    if (s_.ranked.empty()) return;
    line();
    lines(fmt::format("Ratio: step time over the leader's ({}).", error_statement(s_)), Ink::kDim);
    if (shown_.count("tie")) lines(std::string("Tie: ") + kTieLegend, Ink::kDim);
    if (shown_.count("break-even")) {
      lines("Break-even: ahead of the leader in total time, start-up included, until or after that step.",
            Ink::kDim);
    }
    if (shown_.count("from float32")) {
      lines("From float32: distance of the loss and of the gradients on one batch from the float32 twin.",
            Ink::kDim);
    }
    if (shown_.count("to the device")) {
      lines("To the device: a copy from the host by itself, of a batch, or once of data that stay there.",
            Ink::kDim);
    }
    if (shown_.count("wait")) lines("Wait: share of its time in which the loop had no batch.", Ink::kDim);
    roofline_legend();
  }

  void roofline_legend() {
    if (shown_.count("of peak") && s_.roofline) lines(roofline_statement(*s_.roofline), Ink::kDim);
  }

  void published() {
    const auto table = beside_lines(s_, width_, options_.colour);
    if (table.empty()) return;
    line();
    line("Beside the published table", Ink::kBold);
    for (const std::string& row : table) out_ += row + '\n';
    lines(beside_statement(*s_.published), Ink::kDim);
  }

  // A table of its own below the ranking, with notes on its rows and a legend.
  template <typename Cells, typename NameOf>
  void beside(const std::string& title, const std::vector<Column>& columns, const std::vector<Cells>& rows,
              const NameOf& name_of, const std::string& legend) {
    line();
    lines(title, Ink::kBold);
    for (const std::string& row : layout(choose_columns(columns, width_), width_, options_.colour))
      out_ += row + '\n';
    for (const Cells& row : rows) {
      if (!row.note.empty()) lines(name_of(row) + ": " + row.note, Ink::kWarn, "  · ", "    ");
    }
    line();
    lines(legend, Ink::kDim);
  }

  void latency() {
    if (s_.latency.empty()) return;
    beside(
        "Latency", latency_columns(s_), latency_cells(s_),
        [](const LatencyCells& row) { return row.name + ", " + row.mode; }, latency_legend(s_));
  }

  void whole_training() {
    if (s_.fit.empty()) return;
    beside(
        fit_title(s_), fit_columns(s_), fit_cells(s_), [](const FitCells& row) { return row.name; },
        fit_legend(s_));
  }

  void target() {
    if (s_.target.empty()) return;
    beside(
        "Training to " + s_.target_text, target_columns(s_), target_cells(s_),
        [](const TargetCells& row) { return row.name; }, target_legend(s_));
  }

  void search() {
    if (s_.search.empty()) return;
    beside(
        "Batch size", search_columns(s_), search_cells(s_), [](const SearchCells& row) { return row.name; },
        search_legend(s_));
  }

  void largest() {
    if (s_.largest.empty()) return;
    beside(
        "Largest batch that fits", largest_columns(s_), largest_cells(s_),
        [](const LargestCells& row) { return row.name; }, largest_legend());
  }

  void variance() {
    if (!s_.variance) return;
    line();
    line("Where the variance is", Ink::kBold);
    lines(one_line(s_.variance->sentence), Ink::kPlain, "  ", "  ");
    std::vector<std::string> parts;
    for (const VariancePart& part : variance_parts(*s_.variance)) parts.push_back(part.what + " " + part.sd);
    lines(fmt::format("{}", fmt::join(parts, " · ")), Ink::kDim, "  ", "  ");
  }

  void unranked() {
    if (s_.unranked.empty()) return;
    line();
    line("Not ranked", Ink::kBold);
    for (const Row& row : s_.unranked) {
      const std::string name = one_line(row.contender.id);
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
  std::set<std::string> shown_;  // titles of the columns that there was room for
  std::string out_;
};

}  // namespace

std::string render_terminal(const Summary& summary, const TerminalOptions& options) {
  return Screen(summary, options).render();
}

}  // namespace bakeoff::report
