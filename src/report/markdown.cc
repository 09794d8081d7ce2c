// Markdown has no way to quote text as it is: every character that could begin markup is escaped, and code
// spans get a fence longer than any run of back-ticks in them. Mentions (@) and references (#) are escaped as
// well, since a report in a pull request must not call people because a contender has such a name.

#include "report/markdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "records/names.h"
#include "report/first_screen.h"
#include "report/outlook_section.h"
#include "report/phrases.h"
#include "report/published_section.h"
#include "report/ranking.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

// A code span that shows any `text`. Within a table a "|" is escaped also there.
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

// Any text as it is; what stands between two back-ticks is a code span.
std::string escape(std::string_view text) {
  std::string out;
  const std::string line = one_line(text);
  for (size_t at = 0; at < line.size(); ++at) {
    const size_t end = line[at] == '`' ? line.find('`', at + 1) : std::string::npos;
    if (end != std::string::npos && end > at + 1) {
      out += code(std::string_view(line).substr(at + 1, end - at - 1));
      at = end;
      continue;
    }
    if (std::string_view("\\`*_{}[]<>#|~!$@&").find(line[at]) != std::string_view::npos) out += '\\';
    out += line[at];
  }
  return out;
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

// What people call a contender; an id that nobody calls otherwise is code, as a file's name is.
std::string name_text(const std::string& name, const std::string& id) {
  return id.empty() || id == name ? code(name) : escape(name);
}

std::string cell_text(const FilledColumn& column, size_t row) {
  const Cell& cell = column.cells[row];
  if (column.column.name) return name_text(cell.text, cell.hint);
  const std::string range = range_beside(cell);
  return escape(cell.text) + (range.empty() ? "" : ' ' + range);
}

std::string table_of(const std::vector<FilledColumn>& columns) {
  std::string out = "|", rule = "|";
  for (const auto& [column, cells] : columns) {
    out += ' ' + escape(column.title) + " |";
    rule += column.left ? "---|" : "---:|";
  }
  out += '\n' + rule + '\n';
  for (size_t row = 0; row < columns.front().cells.size(); ++row) {
    out += '|';
    for (const FilledColumn& column : columns) out += ' ' + cell_text(column, row) + " |";
    out += '\n';
  }
  return out;
}

// The name and the columns of that part; none where there are no such columns.
std::vector<FilledColumn> part_of(const std::vector<FilledColumn>& columns, Part part) {
  std::vector<FilledColumn> out;
  for (const FilledColumn& column : columns) {
    if (column.column.part == part || column.column.name) out.push_back(column);
  }
  return out.size() > 1 ? out : std::vector<FilledColumn>{};
}

std::string ranking(const Summary& s) {
  const std::vector<FilledColumn> all = ranking_columns(s);
  std::string out = table_of(part_of(all, Part::kMain));
  std::string legend = fmt::format("Intervals: {}.", error_statement(s));
  for (const auto& [column, cells] : all) {
    if (column.in_legend) legend += ' ' + titled(column);
  }
  out += fmt::format("\n<sub>{}</sub>\n", escape(legend));
  if (const auto cost = part_of(all, Part::kCost); !cost.empty()) out += "\n**Cost**\n\n" + table_of(cost);
  if (const auto resources = part_of(all, Part::kResources); !resources.empty()) {
    out += "\n<details><summary>What a step used</summary>\n\n" + table_of(resources) + "\n</details>\n";
  }
  if (!s.not_sampled.empty())
    out += fmt::format("\n<sub>Not measured: {}.</sub>\n", escape(join(s.not_sampled, "; ")));
  return out;
}

// A table below the ranking, with its legend and notes on its rows.
std::string below(const Section& section) {
  if (section.columns.empty() || section.rows() == 0) return "";
  std::string says;
  for (const std::string& one : section.sentences) says += fmt::format("- {}\n", escape(one));
  if (!says.empty()) says += '\n';
  std::string out = fmt::format("\n**{}**\n\n{}{}\n<sub>{}</sub>\n", escape(section.title), says,
                                table_of(section.columns), escape(section.legend));
  for (size_t i = 0; i < section.notes.size(); ++i) {
    if (!section.notes[i].empty())
      out += fmt::format("\n- {}: {}\n", escape(section.row_names[i]), escape(section.notes[i]));
  }
  if (!section.next.empty()) out += fmt::format("\n{}\n", escape(section.next));
  if (!section.command.empty()) out += '\n' + code_block({section.command});
  return out;
}

std::string unranked(const Summary& s, int log_lines) {
  std::string out = "\n**Not ranked**\n\n";
  for (const Row& row : s.unranked) {
    out += fmt::format("- {}: {}\n", name_text(label(row.contender), one_line(row.contender.id)),
                       escape(unranked_reason(row)));
    if (!row.failure) continue;
    const std::vector<std::string> log = last_lines(clean(row.failure->log_tail), log_lines);
    if (!log.empty()) out += code_block(log);
  }
  return out;
}

}  // namespace

std::string render_markdown(const Section& section) { return below(section); }

std::string render_markdown(const Summary& s, const MarkdownOptions& options) {
  std::string out = fmt::format("### Bakeoff: {} ({})\n\n", escape(s.title), escape(track_label(s)));
  const FirstScreen first = first_screen(s, shown_run(s.run));
  out += fmt::format("**{}** {}\n\n", escape(first.answer), escape(first.rest));
  out += fmt::format("{}\n\n", escape(join(first.what, " · ")));
  out += fmt::format("{}\n\n{}\n\n", escape(headline(s)), join(facts(s), " · "));
  for (const Section& section : outlook_sections(s)) out += below(section) + '\n';
  if (!s.ranked.empty()) out += ranking(s);
  for (const Section& section : sections_of(s)) out += below(section);
  if (s.variance) out += fmt::format("\n{}\n", escape(s.variance->sentence));
  if (!s.unranked.empty()) out += unranked(s, options.log_lines);
  if (!s.notes.empty()) out += "\n**Notes**\n\n";
  for (const std::string& note : s.notes) out += fmt::format("- {}\n", escape(note));
  return out;
}

}  // namespace bakeoff::report
