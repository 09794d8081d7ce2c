#include "regression/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/sha256.h"
#include "table/junit.h"
#include "table/text.h"

namespace bakeoff::regression {
namespace {

using Json = nlohmann::ordered_json;

// Of a workflow command's message; a property's value has two more.
std::string command_text(std::string_view text, bool property) {
  std::string out;
  for (const char c : table::clean(text)) {
    if (c == '%')
      out += "%25";
    else if (c == '\r')
      out += "%0D";
    else if (c == '\n')
      out += "%0A";
    else if (property && c == ':')
      out += "%3A";
    else if (property && c == ',')
      out += "%2C";
    else
      out += c;
  }
  return out;
}

// In Markdown, as it is: no markup, no HTML, no end of a cell.
std::string markdown(std::string_view text) {
  std::string out;
  for (const char c : table::one_line(text)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (std::string_view("\\`*_[]|~#!@:").find(c) != std::string_view::npos)
      (out += '\\') += c;
    else
      out += c;
  }
  return out;
}

std::string title(const Outcome& outcome) {
  return fmt::format("{}: {} against {}", outcome.target, outcome.head.name, outcome.base.name);
}

std::string whole_reason(const Row& row, const Outcome& outcome) {
  const std::string more = what_decides(row, outcome);
  return sentence(row, outcome) + (more.empty() ? "" : " " + more);
}

table::JunitCase testcase(const Row& row, const Outcome& outcome) {
  const std::string reason = whole_reason(row, outcome);
  table::JunitCase one{
      .name = row.contender,
      .group = title(outcome),
      .seconds = outcome.seconds / static_cast<double>(std::max<size_t>(1, outcome.rows.size()))};
  if (row.change == stats::Change::kRegression) {
    one.outcome = table::JunitOutcome::kFailed;
    one.kind = "regression";
    one.message = reason;
  } else if (row.change == stats::Change::kUndecided) {
    one.outcome = table::JunitOutcome::kSkipped;
    one.message = reason;
  } else {
    one.output = reason;
  }
  return one;
}

// The surest great regression first.
std::vector<const Row*> of_change(const Outcome& outcome, stats::Change change) {
  std::vector<const Row*> rows;
  for (const Row& row : outcome.rows)
    if (row.change == change) rows.push_back(&row);
  std::ranges::stable_sort(rows, [](const Row* a, const Row* b) { return a->ratio.low > b->ratio.low; });
  return rows;
}

std::string annotation(const char* kind, const Row& row, const Outcome& outcome) {
  const std::string file =
      row.file.empty() ? "" : fmt::format("file={},line=1,", command_text(row.file, true));
  return fmt::format("::{} {}title={}::{}\n", kind, file,
                     command_text(fmt::format("bakeoff gate: {}", table::one_line(row.name)), true),
                     command_text(whole_reason(row, outcome), false));
}

std::string summary_row(const Row& row, const Outcome& outcome) {
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", markdown(row.name), stats::name(row.change),
                     table::ratio(row.ratio.value), markdown(table::interval(row.ratio, table::ratio)),
                     shown(row.base_ms, outcome), shown(row.head_ms, outcome), row.heats);
}

}  // namespace

std::string to_junit(const Outcome& outcome) {
  table::JunitSuite suite{.name = "bakeoff gate"};
  for (const Row& row : outcome.rows) suite.cases.push_back(testcase(row, outcome));
  return table::render_junit(suite);
}

std::string junit_of_error(const std::string& target, const Error& error) {
  return table::render_junit({.name = "bakeoff gate",
                              .cases = {{.name = target,
                                         .group = "bakeoff gate",
                                         .outcome = table::JunitOutcome::kError,
                                         .kind = "error",
                                         .message = error.text()}}});
}

std::string to_annotations(const Outcome& outcome) {
  std::string out;
  size_t left = kMostAnnotations;
  for (const Row* row : of_change(outcome, stats::Change::kRegression))
    if (left > 0) out += annotation("error", *row, outcome), --left;
  for (const Row* row : of_change(outcome, stats::Change::kUndecided))
    if (left > 0) out += annotation("warning", *row, outcome), --left;
  return out;
}

std::string annotation_of_error(const Error& error) {
  return fmt::format("::error title=bakeoff gate::{}\n", command_text(error.text(), false));
}

std::string to_step_summary(const Outcome& outcome) {
  static constexpr const char* kHeads[] = {"no regression", "REGRESSION", "undecided"};
  std::string out = fmt::format(
      "## bakeoff gate: {}\n\n{} against {}, {}. Margin {}, alpha {}, {} of races.\n\n",
      kHeads[static_cast<size_t>(verdict(outcome))], markdown(outcome.head.name), markdown(outcome.base.name),
      markdown(outcome.target), table::percent(outcome.settings.margin),
      table::percent(outcome.settings.alpha), table::duration(1e3 * outcome.seconds));
  out +=
      "| contender | verdict | ratio | interval | before | now | heats |\n|---|---|---:|---|---:|---:|---:|\n";
  for (const Row& row : outcome.rows) out += summary_row(row, outcome);
  out += "\n";
  for (const Row& row : outcome.rows)
    if (row.change != stats::Change::kNone)
      out += fmt::format("- {}\n", markdown(whole_reason(row, outcome)));
  for (const std::string& note : outcome.notes) out += fmt::format("- {}\n", markdown(note));
  return out;
}

std::string fitted_summary(const std::string& text, size_t before) {
  const std::string note = "\n(more did not fit into the summary)\n";
  if (before + text.size() <= kStepSummaryBytes) return text;
  if (before + note.size() >= kStepSummaryBytes) return "";
  const size_t room = kStepSummaryBytes - before - note.size();
  const size_t end = text.rfind('\n', room);
  return (end == std::string::npos ? "" : text.substr(0, std::min(end + 1, room))) + note;
}

std::string to_gitlab(const Outcome& outcome) {
  Json issues = Json::array();
  for (const Row* row : of_change(outcome, stats::Change::kRegression)) {
    const std::string key = fmt::format("bakeoff gate\n{}\n{}", outcome.target, row->contender);
    issues.push_back(
        {{"description", table::one_line(whole_reason(*row, outcome))},
         {"check_name", "bakeoff gate"},
         {"fingerprint", sha256(key)},
         {"severity", "major"},
         {"location",
          {{"path", row->file.empty() ? outcome.target : row->file}, {"lines", {{"begin", 1}}}}}});
  }
  return dump(issues, 2) + "\n";
}

}  // namespace bakeoff::regression
