// Histories and the store's lists for a terminal. The chart has a logarithmic axis of 12 rows, so equal
// ratios are equal heights. With more runs than columns several runs share a column; levels are drawn first
// and points over them. Texts from files and databases go through one_line(), which removes the codes that
// a terminal would obey.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/texts.h"
#include "report/history_formats.h"
#include "report/layout.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr size_t kLatest = 12;  // points of the table
constexpr int kChartRows = 12;
constexpr size_t kIdDigits = 8;

std::string date(const std::string& utc) { return one_line(utc.substr(0, 10)); }
std::string minute(const std::string& utc) {
  return utc.size() < 16 ? one_line(utc) : utc.substr(0, 10) + " " + utc.substr(11, 5);
}

std::string signed_percent(double ratio) { return fmt::format("{:+.1f}%", 100 * (ratio - 1)); }

FilledColumn column(const std::string& title, int priority = 0, bool left = false) {
  return {{.title = title, .priority = priority, .left = left}, {}};
}

std::string laid_out(const std::vector<FilledColumn>& columns, const TerminalOptions& options) {
  std::string out;
  for (const std::string& line :
       layout(choose_columns(columns, options.width), options.width, options.colour))
    out += line + '\n';
  return out;
}

Cell shift_cell(const History& h) {
  const size_t open = h.open_shifts();
  if (open == 0) return {.text = h.shifts.empty() ? kNone : "accepted", .ink = Ink::kDim};
  const auto last = std::find_if(h.shifts.rbegin(), h.shifts.rend(), [](const Shift& s) { return s.open(); });
  return {.text = fmt::format("{} since {}", signed_percent(last->ratio), date(h.points[last->at].started)),
          .ink = last->ratio > 1 ? Ink::kBad : Ink::kGood};
}

// A chart of characters: points, the levels, and below it where something changed.
class Chart {
 public:
  Chart(const History& history, int width)
      : h_(history), columns_(static_cast<size_t>(std::max(20, width - 12))) {
    low_ = high_ = h_.points.front().seconds;
    for (const store::LinePoint& p : h_.points)
      low_ = std::min(low_, p.seconds), high_ = std::max(high_, p.seconds);
    if (high_ < low_ * 1.02) low_ /= 1.01, high_ *= 1.01;
    columns_ = std::min(columns_, std::max<size_t>(20, h_.points.size()));
    cells_.assign(kChartRows, std::vector<std::string>(columns_, " "));
  }

  std::string text() {
    for (size_t i = 0; i < h_.points.size(); ++i) cells_[row(h_.levels[i])][at(i)] = "─";
    for (size_t i = 0; i < h_.points.size(); ++i) cells_[row(h_.points[i].seconds)][at(i)] = "•";
    std::string out;
    for (size_t r = 0; r < kChartRows; ++r) {
      const double share = static_cast<double>(r) / (kChartRows - 1);
      const double value = std::exp(std::log(high_) + share * (std::log(low_) - std::log(high_)));
      const bool labelled = r % 3 == 0 || r + 1 == kChartRows;
      out += pad_left(labelled ? milliseconds(1e3 * value) : "", 9) + " │";
      for (const std::string& cell : cells_[r]) out += cell;
      out += '\n';
    }
    return out + below();
  }

 private:
  size_t at(size_t i) const {
    return std::min(columns_ - 1, h_.points.size() < columns_ ? i : i * columns_ / h_.points.size());
  }
  size_t row(double seconds) const {
    const double share = (std::log(high_) - std::log(seconds)) / (std::log(high_) - std::log(low_));
    return static_cast<size_t>(std::clamp(std::lround(share * (kChartRows - 1)), 0L, kChartRows - 1L));
  }
  std::string below() const {
    std::vector<std::string> line(columns_, " ");
    for (const Mark& mark : h_.marks) line[at(mark.at)] = mark.packages ? "v" : "'";
    for (const Shift& shift : h_.shifts) line[at(shift.at)] = shift.accepted ? "a" : "▲";
    return fmt::format("{:9} └{}\n{:11}{}\n", "ms/step", std::string(columns_, '-'), "", join(line, ""));
  }

  const History& h_;
  size_t columns_;
  double low_ = 0, high_ = 0;
  std::vector<std::vector<std::string>> cells_;
};

std::string table_of_points(const History& h, const TerminalOptions& options) {
  std::vector<FilledColumn> columns = {column("started (UTC)", 0, true),
                                       column("ms/step"),
                                       column("interval", 3),
                                       column("against level before", 2),
                                       column("commit", 4, true),
                                       column("changed", 1, true),
                                       column("run", 5, true)};
  const size_t n = h.points.size();
  for (size_t i = n > kLatest ? n - kLatest : 0; i < n; ++i) {
    const store::LinePoint& p = h.points[i];
    std::string changed = p.note.empty() ? "" : one_line(p.note);
    for (const Mark& mark : h.marks)
      if (mark.at == i) changed += fmt::format("{}{}", changed.empty() ? "" : ", ", join(mark.changes, ", "));
    const Estimate ms{1e3 * p.seconds, 1e3 * p.low.value_or(0), 1e3 * p.high.value_or(INFINITY)};
    const double before = i == 0 ? NAN : h.levels[i - 1];
    const std::vector<std::string> cells = {
        minute(p.started),
        milliseconds(ms.value),
        interval(ms, milliseconds),
        std::isfinite(before) ? signed_percent(p.seconds / before) : kNone,
        p.commit.empty() ? kNone : p.commit.substr(0, 9) + (p.dirty ? "+" : ""),
        changed.empty() ? kNone : fit(one_line(changed), 48),
        p.run};
    for (size_t c = 0; c < cells.size(); ++c) columns[c].cells.push_back({.text = cells[c]});
  }
  return laid_out(columns, options);
}

std::string if_meant(const History& h, const Shift& shift) {
  const std::string& run = h.points[shift.at].run;
  return h.of_index ? fmt::format("if it is meant: bakeoff history accept {} --run {}",
                                  h.line.id.substr(0, kIdDigits), run)
                    : fmt::format("if it is meant: 'accepted' in the column 'shift' of {}", one_line(run));
}

}  // namespace

std::string shift_text(const History& h, const Shift& shift) {
  const store::LinePoint& p = h.points[shift.at];
  std::string text =
      fmt::format("{} ms -> {} ms ({}) from {} on (run {})", milliseconds(1e3 * shift.before),
                  milliseconds(1e3 * shift.after), signed_percent(shift.ratio), minute(p.started), p.run);
  if (!shift.changes.empty()) text += fmt::format("; changed there: {}", join(shift.changes, ", "));
  return one_line(text);
}

std::string how_to_decide(const History& h, const Shift& shift) {
  const std::string before = h.points[shift.at - 1].commit, after = h.points[shift.at].commit;
  const bool commits = !before.empty() && !after.empty() && before != after;
  return commits ? fmt::format("bakeoff gate --base {} --head {}", before.substr(0, 9), after.substr(0, 9))
                 : std::string("bakeoff gate --base REF --head REF");
}

std::string render_history(const History& h, const TerminalOptions& options) {
  std::string out =
      paragraph(one_line(fmt::format("{} · {}", title_of(h.line), h.line.machine)), options.width) + "\n" +
      paragraph(
          one_line(fmt::format("series {}: {}; {}", h.line.id, h.line.measured, counted(h.line.runs, "run"))),
          options.width) +
      "\n\n";
  if (h.points.empty())
    return out +
           paragraph("No run has a time of it: `bakeoff store list --skipped` and the runs' reports say why.",
                     options.width) +
           "\n";
  out += Chart(h, options.width).text();
  out += paragraph(
             "• a run, ─ level, ▲ nominated shift, a accepted step, v packages changed, ' commit, script, "
             "host or bakeoff changed",
             options.width) +
         "\n\n";
  if (h.left_out > 0)
    out += paragraph(fmt::format("{} earlier runs are not shown: --last takes more of them.", h.left_out),
                     options.width) +
           "\n\n";
  out += table_of_points(h, options) + "\n";
  for (const Shift& shift : h.shifts) {
    const std::string state = shift.accepted ? "Accepted step: " : "Nominated shift: ";
    out += paragraph(state + shift_text(h, shift) + (shift.note.empty() ? "" : " – " + one_line(shift.note)),
                     options.width, "", "  ") +
           "\n";
    if (shift.open())
      out += paragraph(fmt::format("a history nominates, a pair decides: {}", how_to_decide(h, shift)),
                       options.width, "  ", "    ") +
             "\n" + paragraph(if_meant(h, shift), options.width, "  ", "    ") + "\n";
  }
  if (h.shifts.empty())
    out += paragraph(h.points.size() < kFewestPoints
                         ? fmt::format("No shift can be nominated in fewer than {} runs.", kFewestPoints)
                         : "No shift of its level is nominated (at 1%).",
                     options.width) +
           "\n";
  return out;
}

std::string render_history_list(const std::vector<History>& histories, const std::string& where,
                                const TerminalOptions& options) {
  if (histories.empty())
    return paragraph(fmt::format("The index {} has no series yet: `bakeoff run` adds one for each contender, "
                                 "`bakeoff store import DIR` those of earlier runs.",
                                 one_line(where)),
                     options.width) +
           "\n";
  std::vector<FilledColumn> columns = {column("series", 0, true),
                                       column("recipe and contender", 0, true),
                                       column("runs"),
                                       column("latest ms/step"),
                                       column("level shift", 0, true),
                                       column("latest run", 5, true),
                                       column("machine", kLuxury + 1, true)};
  columns[1].column.name = true;
  size_t open = 0;
  for (const History& h : histories) {
    open += h.open_shifts();
    const std::vector<Cell> cells = {
        {.text = h.line.id.substr(0, kIdDigits)},
        {.text = title_of(h.line)},
        {.text = fmt::format("{}", h.line.runs)},
        {.text = h.points.empty() ? kNone : milliseconds(1e3 * h.points.back().seconds)},
        shift_cell(h),
        {.text = date(h.line.latest)},
        {.text = one_line(h.line.machine)}};
    for (size_t c = 0; c < cells.size(); ++c) columns[c].cells.push_back(cells[c]);
  }
  std::string out = laid_out(columns, options) + "\n";
  const std::string next =
      open == 0 ? "`bakeoff history SERIES` shows one of them."
                : fmt::format(
                      "{} nominated: a history nominates, a pair decides. `bakeoff history SERIES` shows "
                      "one of them and how to decide.",
                      counted(static_cast<int64_t>(open), "shift"));
  return out + paragraph(next, options.width) + "\n";
}

std::string render_store_list(const std::vector<store::ListedRun>& runs, const store::Tally& tally,
                              const std::string& where, const TerminalOptions& options) {
  std::vector<FilledColumn> columns = {column("started (UTC)", 0, true), column("recipe", 0, true),
                                       column("outcome", 1, true),       column("contenders", 4),
                                       column("host", 5, true),          column("commit", 6, true),
                                       column("directory", 2, true)};
  columns.back().column.name = true;
  for (const store::ListedRun& r : runs) {
    const std::string outcome = r.note.empty() ? r.outcome : r.outcome + " (!)";
    const std::vector<std::string> cells = {minute(r.started),
                                            one_line(r.recipe),
                                            outcome,
                                            fmt::format("{}", r.contenders),
                                            one_line(r.host),
                                            r.commit.empty() ? kNone : r.commit.substr(0, 9),
                                            one_line(r.directory)};
    for (size_t c = 0; c < cells.size(); ++c) columns[c].cells.push_back({.text = cells[c]});
  }
  std::string out = runs.empty() ? "" : laid_out(columns, options) + "\n";
  for (const store::ListedRun& r : runs)
    if (!r.note.empty())
      out += paragraph(fmt::format("(!) {}: {}", minute(r.started), one_line(r.note)), options.width, "",
                       "    ") +
             "\n";
  out +=
      paragraph(fmt::format("{}: {}, {} of contenders, {} series{}", one_line(where),
                            counted(tally.runs, "run"), counted(tally.results, "result"), tally.series,
                            tally.skipped == 0 ? std::string()
                                               : fmt::format("; {} could not be read (--skipped lists them)",
                                                             counted(tally.skipped, "folder"))),
                options.width) +
      "\n";
  return out;
}

std::string render_skipped(const std::vector<store::Skipped>& skipped, int width) {
  std::string out;
  for (const store::Skipped& s : skipped)
    out +=
        paragraph(fmt::format("{}: {}", one_line(s.directory), one_line(s.reason)), width, "", "    ") + "\n";
  return out;
}

}  // namespace bakeoff::report
