#include "report/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/beside.h"
#include "report/cells.h"
#include "report/fit_view.h"
#include "report/largest_view.h"
#include "report/latency_view.h"
#include "table/numbers.h"
#include "report/search_view.h"
#include "report/target_view.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_{}[]<>#|~!$@&").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// A code span that shows `text` whatever it holds. Within a table a "|" is escaped also there.
std::string code(std::string_view text) {
  std::string body;
  size_t longest = 0, run = 0;
  for (const char c : one_line(text)) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (c == '|') body += '\\';
    body += c;
  }
  const std::string fence(longest + 1, '`');
  return longest > 0 ? fence + ' ' + body + ' ' + fence : fence + body + fence;
}

std::string code_block(const std::vector<std::string>& lines) {
  size_t longest = 0, run = 0;
  for (const std::string& line : lines) {
    for (const char c : line) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  }
  const std::string fence(std::max<size_t>(3, longest + 1), '`');
  std::string out = "  " + fence + "text\n";
  for (const std::string& line : lines) out += "  " + line + '\n';
  return out + "  " + fence + '\n';
}

std::string table(const Summary& s) {
  const bool ties = has_ties(s);
  std::string out = "| rank | contender |";
  std::string rule = "|---:|---|";
  const bool groups = !s.ranked.empty() && !cells(s, s.ranked.front()).group.empty();
  if (groups) out += " precision | from float32 |", rule += "---|---|";
  if (ties) out += " tie |", rule += "---|";
  const bool waits = std::any_of(s.ranked.begin(), s.ranked.end(),
                                 [](const Row& row) { return row.wait.share.has_value(); });
  const bool copies =
      std::any_of(s.ranked.begin(), s.ranked.end(), [](const Row& row) { return row.transfer.has_value(); });
  out += fmt::format(
      " ms/step | ratio to the leader | verdict | samples/s | {}first step | cold | {}break-even | peak "
      "memory | parity |\n",
      waits ? "wait | " : "", copies ? "to the device | " : "");
  out += rule + "---:|---:|---|---:|" + (waits ? "---:|" : "") + "---:|---:|" + (copies ? "---:|" : "") +
         "---|---:|---|\n";
  for (const Row& row : s.ranked) {
    Cells c = cells(s, row);
    fill_usage(s, row, c);
    const std::string against = c.ratio_interval == "–" ? "" : ' ' + c.ratio_interval;
    out += fmt::format("| {} | {} |", c.rank, code(c.name));
    if (groups) out += fmt::format(" {} | {} |", escape(c.group), escape(c.distance));
    if (ties) out += fmt::format(" {} |", escape(c.ties));
    out += fmt::format(" {} {} | {}{} | {} | {} |", c.ms, c.ms_interval, c.ratio, against, escape(c.verdict),
                       c.rate);
    if (waits) out += fmt::format(" {} |", c.wait);
    out += fmt::format(" {} | {} |", c.first_step, c.first_step_cold);
    if (copies) out += fmt::format(" {} |", c.transfer);
    out += fmt::format(" {} | {} | {} |\n", c.break_even, c.memory, c.parity);
  }
  return out;
}

// What stands below a table beside the ranking: its legend, and notes on its rows.
template <typename Cells, typename NameOf>
std::string below(const std::vector<Cells>& rows, const NameOf& name_of, const std::string& legend) {
  std::string out = fmt::format("\n<sub>{}</sub>\n", escape(legend));
  for (const Cells& row : rows) {
    if (!row.note.empty()) out += fmt::format("\n- {}: {}\n", name_of(row), escape(row.note));
  }
  return out;
}

// Memory, energy and money by the sample, where anybody has a number of them.
std::string cost(const Summary& s) {
  std::vector<Cells> rows;
  for (const Row& row : s.ranked) {
    rows.push_back(cells(s, row));
    fill_usage(s, row, rows.back());
  }
  const std::string unit = s.currency.empty() ? "unit of currency" : escape(s.currency);
  const std::pair<std::string, std::string Cells::*> all[] = {{"memory a sample", &Cells::sample_memory},
                                                              {"samples/J", &Cells::per_joule},
                                                              {"samples/" + unit, &Cells::per_unit},
                                                              {"an epoch", &Cells::epoch},
                                                              {"its price", &Cells::price},
                                                              {"its CO2", &Cells::co2}};
  std::string head = "\n**Cost**\n\n| contender |", rule = "|---|";
  std::vector<std::string Cells::*> shown;
  for (const auto& column : all) {
    const auto text = column.second;
    if (std::all_of(rows.begin(), rows.end(), [&](const Cells& c) { return c.*text == kNone; })) continue;
    head += ' ' + column.first + " |", rule += "---:|";
    shown.push_back(text);
  }
  if (shown.empty()) return "";
  std::string out = head + '\n' + rule + '\n';
  for (const Cells& c : rows) {
    out += fmt::format("| {} |", code(c.name));
    for (const auto& text : shown) out += ' ' + escape(c.*text) + " |";
    out += '\n';
  }
  if (!s.not_sampled.empty())
    out += fmt::format("\n<sub>Not measured: {}.</sub>\n",
                       escape(fmt::format("{}", fmt::join(s.not_sampled, "; "))));
  return out;
}

std::string latency(const Summary& s) {
  const std::vector<LatencyCells> rows = latency_cells(s);
  std::string out = "\n**Latency**\n\n| requests | contender |", rule = "|---|---|";
  for (const LatencyCell& cell : rows.front().percentiles) out += ' ' + cell.title + " |", rule += "---:|";
  out += " load | queue |\n" + rule + "---:|---|\n";
  for (const LatencyCells& row : rows) {
    out += fmt::format("| {} | {} |", row.mode, code(row.name));
    for (const LatencyCell& cell : row.percentiles)
      out += cell.value == "–" ? " – |" : fmt::format(" {} {} |", cell.value, cell.bounds);
    out += fmt::format(" {} | {} |\n", row.load, row.state);
  }
  const auto name_of = [](const LatencyCells& row) { return code(row.name) + ", " + row.mode; };
  return out + below(rows, name_of, latency_legend(s));
}

std::string target(const Summary& s) {
  std::string out = fmt::format(
      "\n**Training to {}**\n\n| contender | reached | steps | epochs | seconds | start-up | against the "
      "referee |\n"
      "|---|---|---|---|---|---|---|\n",
      escape(s.target_text));
  const std::vector<TargetCells> rows = target_cells(s);
  for (const TargetCells& row : rows)
    out += fmt::format("| {} | {} | {} {} | {} | {} {} | {} | {} |\n", code(row.name), row.reached, row.steps,
                       row.steps_interval, row.epochs, row.seconds, row.seconds_interval, row.start_up,
                       escape(row.convergence));
  return out + below(
                   rows, [](const TargetCells& row) { return code(row.name); }, target_legend(s));
}

std::string fit_table(const Summary& s) {
  std::string out = fmt::format(
      "\n**{}**\n\n| contender | seconds | an epoch | wait | over steps | start-up | loss | held-out loss | "
      "accuracy |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
      escape(fit_title(s)));
  const std::vector<FitCells> rows = fit_cells(s);
  for (const FitCells& row : rows)
    out +=
        fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", code(row.name), row.seconds,
                    row.epoch, row.wait, row.over_steps, row.start_up, row.loss, row.held_loss, row.accuracy);
  return out + below(
                   rows, [](const FitCells& row) { return code(row.name); }, fit_legend(s));
}

std::string search(const Summary& s) {
  std::string out =
      "\n**Batch size**\n\n| contender | best batch | samples/s | processes | enough | tried |\n"
      "|---|---:|---:|---|---:|---|\n";
  const std::vector<SearchCells> rows = search_cells(s);
  for (const SearchCells& row : rows)
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(row.name), row.best, row.rate, row.range,
                       row.enough, row.tried);
  return out + below(
                   rows, [](const SearchCells& row) { return code(row.name); }, search_legend(s));
}

std::string largest(const Summary& s) {
  std::string out =
      "\n**Largest batch that fits**\n\n| contender | largest batch | fails at | peak | a sample | limit |\n"
      "|---|---:|---:|---:|---:|---:|\n";
  const std::vector<LargestCells> rows = largest_cells(s);
  for (const LargestCells& row : rows)
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(row.name), row.largest, row.fails_at,
                       row.peak, row.per_sample, row.limit);
  return out + below(
                   rows, [](const LargestCells& row) { return code(row.name); }, largest_legend());
}

std::string unranked(const Summary& s, int log_lines) {
  std::string out = "\n**Not ranked**\n\n";
  for (const Row& row : s.unranked) {
    out += fmt::format("- {}: {}\n", code(row.contender.id), escape(unranked_reason(row)));
    if (!row.failure) continue;
    const std::vector<std::string> log = last_lines(clean(row.failure->log_tail), log_lines);
    if (!log.empty()) out += code_block(log);
  }
  return out;
}

}  // namespace

std::string render_markdown(const Summary& s, const MarkdownOptions& options) {
  std::string out = fmt::format("### Bakeoff: {} ({})\n\n", escape(s.title), escape(track_label(s)));
  out += fmt::format("**{}**\n\n", escape(headline(s)));
  out += fmt::format("{}\n\n", fmt::join(facts(s), " · "));
  if (!s.ranked.empty()) {
    out += table(s);
    out += fmt::format("\n<sub>Intervals: {}.{}</sub>\n", error_statement(s),
                       has_ties(s) ? std::string(" Tie: ") + kTieLegend : "");
  }
  out += cost(s);
  out += beside_markdown(s);
  if (!s.fit.empty()) out += fit_table(s);
  if (!s.target.empty()) out += target(s);
  if (!s.latency.empty()) out += latency(s);
  if (!s.search.empty()) out += search(s);
  if (!s.largest.empty()) out += largest(s);
  if (s.variance) out += fmt::format("\n{}\n", escape(s.variance->sentence));
  if (!s.unranked.empty()) out += unranked(s, options.log_lines);
  if (!s.notes.empty()) out += "\n**Notes**\n\n";
  for (const std::string& note : s.notes) out += fmt::format("- {}\n", escape(note));
  return out;
}

}  // namespace bakeoff::report
