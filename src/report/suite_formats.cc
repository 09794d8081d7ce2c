// A suite is a matrix of contenders and recipes, wider than most terminals. The columns are laid out as
// boxes, then cut into as many tables below each other as the width asks for, each beginning with the names;
// intervals are dropped before a table is cut. Markdown, JSON and CSV are read by programs and get every cell
// in one piece.

#include "report/suite_formats.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"
#include "base/version.h"
#include "report/csv.h"
#include "report/layout.h"
#include "report/markdown.h"
#include "report/suite_sections.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr int kLeastSuiteWidth = 40;
constexpr int kMostOfName = 30;
constexpr int kMostOfTitle = 16;

// Texts of one cell, a line each, as wide as the widest.
struct Box {
  std::vector<std::string> lines = {};
  Ink ink = Ink::kPlain;
  int width() const {
    int most = 0;
    for (const std::string& line : lines) most = std::max(most, display_width(line));
    return most;
  }
};

Box box_of(const FilledColumn& column, const Cell& cell, int most) {
  if (column.column.name || column.column.left) return {wrap(cell.text, most), cell.ink};
  Box box{{cell.text}, cell.ink};
  if (!cell.range.empty()) box.lines.push_back(cell.range);
  return box;
}

// A column as boxes, its title first.
struct BoxColumn {
  std::vector<Box> boxes = {};
  bool left = false;
  int width = 0;
};

BoxColumn boxed(const FilledColumn& column, int most_of_name, bool ranges) {
  const bool left = column.column.name || column.column.left;
  BoxColumn out{.left = left};
  out.boxes.push_back({wrap(column.column.title, kMostOfTitle), Ink::kBold});
  for (const Cell& cell : column.cells) out.boxes.push_back(box_of(column, cell, most_of_name));
  for (Box& box : out.boxes) {
    if (!left && !ranges && &box != &out.boxes.front()) box.lines.resize(1);
    out.width = std::max(out.width, box.width());
  }
  return out;
}

// The columns of one block below each other, row by row.
std::string block_text(const std::vector<const BoxColumn*>& columns, bool colour) {
  std::string out;
  for (size_t row = 0; row < columns.front()->boxes.size(); ++row) {
    size_t lines = 0;
    for (const BoxColumn* column : columns) lines = std::max(lines, column->boxes[row].lines.size());
    for (size_t i = 0; i < lines; ++i) {
      std::string line;
      for (const BoxColumn* column : columns) {
        const Box& box = column->boxes[row];
        // Titles stand at the bottom, right above their numbers.
        const size_t shift = row == 0 ? lines - box.lines.size() : 0;
        const std::string text = i >= shift && i - shift < box.lines.size() ? box.lines[i - shift] : "";
        const std::string space(static_cast<size_t>(column->width - display_width(text)), ' ');
        const Ink ink = row > 0 && i > 0 && !column->left ? Ink::kDim : box.ink;
        line += (line.empty() ? "" : "  ") +
                (column->left ? paint(text, ink, colour) + space : space + paint(text, ink, colour));
      }
      line.resize(line.find_last_not_of(' ') + 1);
      out += line + '\n';
    }
    if (row > 0) continue;
    int width = -2;
    for (const BoxColumn* column : columns) width += column->width + 2;
    for (int i = 0; i < width; ++i) out += "─";
    out += '\n';
  }
  return out;
}

std::vector<BoxColumn> all_boxed(const Section& section, int width, bool ranges) {
  std::vector<BoxColumn> columns;
  for (const FilledColumn& column : section.columns)
    columns.push_back(boxed(column, std::min(kMostOfName, width / 3), ranges));
  return columns;
}

int width_of(const std::vector<BoxColumn>& columns) {
  int width = -2;
  for (const BoxColumn& column : columns) width += 2 + column.width;
  return width;
}

// One block, without intervals if it needs that; else as many as the width needs, each beginning with the names.
std::string grid_text(const Section& section, int width, bool colour) {
  std::vector<BoxColumn> columns = all_boxed(section, width, true);
  if (width_of(columns) > width) {
    std::vector<BoxColumn> brief = all_boxed(section, width, false);
    if (width_of(brief) <= width) columns = std::move(brief);
  }
  std::string out;
  for (size_t next = 1; next < columns.size();) {
    std::vector<const BoxColumn*> block = {&columns[0]};
    int used = columns[0].width;
    while (next < columns.size() && (block.size() == 1 || used + 2 + columns[next].width <= width)) {
      used += 2 + columns[next].width;
      block.push_back(&columns[next++]);
    }
    if (!out.empty()) out += '\n';
    out += block_text(block, colour);
  }
  return out;
}

std::string painted(const std::string& text, int width, Ink ink, bool colour, std::string_view first = "",
                    std::string_view rest = "") {
  std::string out;
  const std::string lines = paragraph(text, width, first, rest);
  for (size_t at = 0; at <= lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    out += paint(lines.substr(at, end - at), ink, colour) + '\n';
    at = end + 1;
  }
  return out;
}

// Why a cell has no time, once for each: "digits_cnn, jax: run: crashed".
std::vector<std::string> reasons_of(const suite::Table& t) {
  std::vector<std::string> all;
  for (const suite::TableRow& row : t.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      if (row.cells[i].standing == suite::Standing::kNotRanked)
        all.push_back(
            one_line(fmt::format("{}, {}: {}", row.name, t.name_of(t.contenders[i]), row.cells[i].reason)));
    }
  }
  return all;
}

std::string word(suite::Standing standing) {
  switch (standing) {
    case suite::Standing::kAbsent:
      return "not in the recipe";
    case suite::Standing::kNotRanked:
      return "not ranked";
    case suite::Standing::kWaits:
      return "waits";
    case suite::Standing::kBound:
      return "bound";
    case suite::Standing::kTimed:
      break;
  }
  return "ranked";
}

Json json_of_cell(const suite::TableCell& cell) {
  Json out = {{"state", word(cell.standing)}};
  const bool timed = cell.standing == suite::Standing::kTimed;
  const bool known = timed || cell.standing == suite::Standing::kBound;
  out["ratio"] = known ? estimate(cell.ratio) : Json(nullptr);
  out["ms_per_step"] = timed ? number(cell.ms) : Json(nullptr);
  out["samples_per_second"] = timed ? number(cell.samples_per_second) : Json(nullptr);
  out["may_be_fastest"] = cell.may_be_fastest;
  out["surely_fastest"] = cell.surely_fastest;
  out["reason"] = text_or_null(cell.reason);
  out["times_as_fast"] = cell.against ? estimate(cell.speed) : Json(nullptr);
  out["against_baseline"] = text_or_null(word(cell.verdict));
  return out;
}

Json json_of_mean(const suite::Mean& mean) {
  return {{"compared", mean.compared},
          {"ratio", mean.compared ? estimate(mean.ratio) : Json(nullptr)},
          {"to_best", mean.compared ? estimate(mean.to_best) : Json(nullptr)},
          {"may_be_best", mean.may_be_best},
          {"surely_best", mean.surely_best},
          {"times_as_fast", mean.speed ? estimate(*mean.speed) : Json(nullptr)},
          {"against_baseline", text_or_null(word(mean.verdict))},
          {"rows_with_a_time", mean.rows},
          {"why_not", text_or_null(mean.why_not)}};
}

Fields line_of(const std::string& recipe, const std::string& run, const std::string& contender,
               const Json& cell, const std::string& failure) {
  Fields out = {{"recipe", recipe}, {"run", run}, {"contender", contender}};
  const auto take = [&](const char* name, const char* key, const char* pointer = "") {
    out.emplace_back(name, cell.contains(key) ? plain(cell.at(key), pointer) : "");
  };
  take("state", "state");
  take("ratio", "ratio", "/value");
  take("ratio_low", "ratio", "/low");
  take("ratio_high", "ratio", "/high");
  take("ms_per_step", "ms_per_step");
  take("samples_per_second", "samples_per_second");
  take("may_be_fastest", "may_be_fastest");
  take("surely_fastest", "surely_fastest");
  take("times_as_fast_as_baseline", "times_as_fast", "/value");
  take("times_as_fast_low", "times_as_fast", "/low");
  take("times_as_fast_high", "times_as_fast", "/high");
  take("against_baseline", "against_baseline");
  out.emplace_back("reason",
                   failure.empty() && cell.contains("reason") ? plain(cell.at("reason"), "") : failure);
  return out;
}

}  // namespace

std::string render_terminal(const suite::Table& t, const TerminalOptions& options) {
  const int width = std::max(options.width, kLeastSuiteWidth);
  const bool colour = options.colour;
  std::string out = painted("Bakeoff · " + one_line(suite::called(t)), width, Ink::kBold, colour) + '\n';
  if (t.interrupted) out += painted("Interrupted: what is known so far.", width, Ink::kWarn, colour);
  out += painted(one_line(suite::headline(t)), width, Ink::kGood, colour) + '\n';
  for (const Section& section : suite_sections(t)) {
    out += painted(section.title, width, Ink::kBold, colour);
    out += grid_text(section, width, colour) + '\n';
    for (const std::string& sentence : section.sentences)
      out += painted(sentence, width, Ink::kWarn, colour, "  · ", "    ");
    if (section.key == "table") {
      for (const std::string& reason : reasons_of(t))
        out += painted(reason, width, Ink::kBad, colour, "  ✗ ", "    ");
    }
    if (!out.ends_with("\n\n")) out += '\n';
    out += painted(section.legend, width, Ink::kDim, colour) + '\n';
  }
  return out;
}

std::string render_markdown(const suite::Table& t) {
  std::vector<Section> sections = suite_sections(t);
  for (const std::string& reason : reasons_of(t)) sections.front().sentences.push_back(reason);
  sections.front().sentences.insert(sections.front().sentences.begin(), suite::headline(t));
  sections.front().title = "Bakeoff: " + one_line(suite::called(t));
  std::string out;
  for (const Section& section : sections) out += render_markdown(section);
  return out;
}

std::string render_json(const suite::Table& t) {
  Json out = {{"schema", 1},
              {"tool", "bakeoff"},
              {"version", kVersion},
              {"suite", t.title},
              {"headline", suite::headline(t)},
              {"interrupted", t.interrupted},
              {"baseline", text_or_null(t.baseline)},
              {"contenders", t.contenders},
              {"rows", Json::array()}};
  for (const suite::TableRow& row : t.rows) {
    Json cells = Json::object();
    for (size_t i = 0; i < row.cells.size(); ++i) cells[t.contenders[i]] = json_of_cell(row.cells[i]);
    out["rows"].push_back({{"recipe", row.name},
                           {"file", row.recipe},
                           {"run", row.folder},
                           {"failure", text_or_null(row.failure)},
                           {"refusal", text_or_null(row.refusal)},
                           {"note", text_or_null(row.note)},
                           {"decided", row.decided},
                           {"best", row.best},
                           {"sure", row.sure},
                           {"cells", cells}});
  }
  Json names = Json::array(), means = Json::object();
  for (const size_t r : t.mean_rows) names.push_back(t.rows[r].name);
  for (size_t i = 0; i < t.means.size(); ++i) means[t.contenders[i]] = json_of_mean(t.means[i]);
  out["geometric_mean"] = {{"rows", names}, {"error_rate", number(t.alpha)}, {"contenders", means}};
  return dump(out, 2) + '\n';
}

std::string render_csv(const suite::Table& t) {
  std::vector<Fields> rows;
  for (const suite::TableRow& row : t.rows) {
    if (row.cells.empty() || !row.failure.empty())
      rows.push_back(line_of(row.name, row.folder, "", Json::object(), row.failure));
    for (size_t i = 0; i < row.cells.size() && row.failure.empty(); ++i)
      rows.push_back(line_of(row.name, row.folder, t.contenders[i], json_of_cell(row.cells[i]), ""));
  }
  for (size_t i = 0; i < t.means.size(); ++i) {
    Json cell = json_of_mean(t.means[i]);
    cell["state"] = t.means[i].compared ? "ranked" : "no mean";
    cell["may_be_fastest"] = t.means[i].may_be_best;
    cell["surely_fastest"] = t.means[i].surely_best;
    rows.push_back(line_of(kMeanColumn, "", t.contenders[i], cell, t.means[i].why_not));
  }
  return render_csv(rows);
}

}  // namespace bakeoff::report
