#include "report/self_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/json_text.h"
#include "data/csv.h"
#include "records/names.h"
#include "report/csv.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/json.h"
#include "report/layout.h"
#include "report/markdown.h"
#include "report/outlook_section.h"
#include "report/phrases.h"
#include "report/published_section.h"
#include "report/ranking.h"
#include "report/read_back.h"
#include "report/terminal.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr int kUnwrapped =
    10'000;  // columns: every sentence is one line, and every column of a table is there

// Statements of figures that are no result of this run, by words of the clause that holds them.
struct Exempt {
  const char* words;
  const char* why;
};
constexpr Exempt kExempt[] = {
    {"sure by this look alone",
     "the confidence from which on \"probably\" is said: of the program, for every run"},
    {"percent stolen", "evidence on one pair of contenders; the note is its record, in JSON too"},
    {"more, over", "the same"},
    {"modes", "the same, of one contender's heats"},
};

std::string squeezed(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '`' || c == '\\'; });
  return text;
}

// A table as it should read, and where its numbers stand in the JSON.
struct Sheet {
  std::string name = {};
  std::vector<FilledColumn> columns = {};
  std::vector<std::string> rows = {};  // their names
  Json json = {};
};

std::vector<Sheet> sheets_of(const Summary& s, const Json& json) {
  std::vector<Sheet> all;
  if (!s.ranked.empty()) {
    all.push_back({"the ranking", ranking_columns(s), {}, json.value("ranked", Json())});
    for (const Row& row : s.ranked) all.back().rows.push_back(label(row.contender));
  }
  const auto add = [&](const Section& section, const Json& of) {
    if (!section.columns.empty() && section.rows() > 0)
      all.push_back({"\"" + section.title + '"', section.columns, section.row_names, of});
  };
  size_t open = 0;
  for (const Section& section : outlook_sections(s)) {
    const Json outlook = json.value("outlook", Json::array());
    add(section, open < outlook.size() ? outlook[open] : Json());
    ++open;
  }
  for (const Section& section : sections_of(s)) add(section, json.value(section.key, Json()));
  return all;
}

// What a head stands for: a column, or the column of its ranges.
struct Head {
  const FilledColumn* column = nullptr;
  bool range = false;
};

// Of each head of `table`; nothing where the sheet has no such column.
std::vector<Head> heads_in(const Sheet& sheet, const ReadTable& table) {
  std::vector<Head> found;
  size_t next = 0;
  for (const std::string& title : table.heads) {
    Head head;
    if (next > 0 && !title.empty() && sheet.columns[next - 1].column.range_title == title)
      head = {&sheet.columns[next - 1], true};
    for (size_t i = 0; i < sheet.columns.size() && !head.column; ++i) {
      if (sheet.columns[i].column.title != title) continue;
      head.column = &sheet.columns[i];
      next = i + 1;
    }
    found.push_back(head);
  }
  return found;
}

std::string expected_of(const Head& head, size_t row) {
  const Cell& cell = head.column->cells[row];
  if (head.range) return cell.range.empty() ? kNone : cell.range;
  const std::string range = range_beside(cell);
  return range.empty() ? cell.text : cell.text + ' ' + range;
}

// A terminal has ranges in a column of their own, or not at all; it cuts what is too wide, and shows less of a brief
// column.
bool reads_as(const std::string& shown, const Head& head, size_t row) {
  const std::string text = squeezed(shown), whole = squeezed(expected_of(head, row));
  const std::string& value = head.column->cells[row].text;
  if (text == whole || (!head.range && text == squeezed(value))) return true;
  if (head.column->column.brief && text == value.substr(0, value.find(' '))) return true;
  return text.ends_with("…") && whole.starts_with(text.substr(0, text.size() - std::string("…").size()));
}

class Checker {
 public:
  Checker(const Summary& summary, const Formats& formats) : s_(summary), formats_(formats) {}

  SelfCheck check() {
    json_ = parse_json<Json>(formats_.json);
    if (!json_.is_object() || !json_.contains("ranked") || !json_.contains("outlook")) {
      find("JSON: is no report");
      return std::move(out_);
    }
    numbers_.emplace(json_);
    csv();
    ranking();
    sheets_ = sheets_of(s_, json_);
    for (const Sheet& sheet : sheets_) sections(sheet);
    keep_texts(json_, "");
    for (const auto& [width, text] : formats_.terminals)
      read(fmt::format("text ({} columns)", width), read_terminal(text),
           width == formats_.terminals.back().first);
    read("Markdown", read_markdown(formats_.markdown), true);
    read(formats_.page, read_html(formats_.html), true);
    sentences();
    return std::move(out_);
  }

 private:
  void find(std::string finding) {
    if (told_.insert(finding).second) out_.findings.push_back(std::move(finding));
  }

  // Rows of the JSON, ranked ones first, with what the summary holds of them.
  template <class Each>
  void each_row(Each each) {
    for (const bool ranked : {true, false}) {
      const auto& rows = ranked ? s_.ranked : s_.unranked;
      const Json& found = json_[ranked ? "ranked" : "unranked"];
      for (size_t i = 0; i < rows.size(); ++i)
        each(Place{&s_, &rows[i], ranked}, i < found.size() ? found[i] : Json());
    }
  }

  static Json at(const Json& row, const std::string& key) {
    const Json::json_pointer pointer(key.empty() ? "" : '/' + key);
    return row.contains(pointer) ? row.at(pointer) : Json();
  }

  // Every field: what the JSON says under the column's key.
  void csv() {
    std::vector<std::vector<std::string>> records;
    const auto parsed = read_csv_text(formats_.csv, "CSV", ',', [&](const auto& fields, int64_t) -> Status {
      records.push_back(fields);
      return Done{};
    });
    if (!parsed || records.size() != 1 + s_.ranked.size() + s_.unranked.size()) {
      find(parsed ? "CSV: has not one record for each contender" : parsed.error().text());
      return;
    }
    const auto quantities = ranking_quantities(s_);
    const auto studies = sections_of(s_);
    size_t next = 1;
    each_row([&](const Place& place, const Json& row) {
      Fields expected = {{"recipe", plain(json_, "/title")},
                         {"track", plain(json_, "/track")},
                         {"contender", plain(row, "/contender/id")},
                         {"framework", plain(row, "/contender/framework")},
                         {"reason", plain(row, "/reason")}};
      for (const auto& quantity : quantities) {
        const std::string& key = quantity.column.key;
        const Json value = key.empty() && quantity.value ? quantity.value(place) : at(row, key);
        for (const CsvColumn& column : csv_columns(quantity.column))
          expected.emplace_back(column.name, plain(value, column.pointer));
      }
      for (const Section& section : studies) {
        for (auto& field : fields(section, place.row->contender.id)) {
          from_section(section, field);
          expected.push_back(std::move(field));
        }
      }
      record(records.front(), records[next++], expected);
    });
  }

  // A study's field as a whole, or each number of one that is made of several, is a value of its part of the JSON.
  void from_section(const Section& section, const std::pair<std::string, std::string>& field) {
    auto& values = values_[section.key];
    if (values.empty()) {
      const Json flat = json_.value(section.key, Json::object()).flatten();
      for (const Json& value : flat) values.insert(plain(value, ""));
      values.insert("");
    }
    if (values.contains(field.second)) return;
    for (const Figure& figure : figures_in(field.second)) {
      if (!values.contains(figure.text))
        find(fmt::format("CSV: {}: \"{}\" of \"{}\" is no value of the JSON", field.first, figure.text,
                         field.second));
    }
  }

  void record(const std::vector<std::string>& names, const std::vector<std::string>& values,
              const Fields& expected) {
    for (const auto& [name, value] : expected) {
      const auto at = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
      const std::string shown = at < values.size() ? one_line(values[at]) : "no such column";
      ++out_.figures;
      if (shown != one_line(value) && shown != '\'' + one_line(value))
        find(fmt::format("CSV: {}, {}: \"{}\" is \"{}\" in the JSON", values.size() > 2 ? values[2] : "",
                         name, shown, one_line(value)));
    }
  }

  // The JSON's row against the summary, and people's cell against the JSON.
  void ranking() {
    const auto quantities = ranking_quantities(s_);
    each_row([&](const Place& place, const Json& row) {
      for (const auto& quantity : quantities) {
        const Column& column = quantity.column;
        if (column.key.empty()) continue;
        Json whole = Json::object();
        set(whole, column.key, quantity.value(place));
        ++out_.figures;
        const Json found = at(row, column.key), value = at(whole, column.key);
        const bool shows = place.ranked && quantity.show != nullptr && !column.title.empty();
        const Cell cell = cell_of(quantity, place);
        if (found != value &&
            !(found.is_null() && at(row, column.key.substr(0, column.key.find('/'))).is_null()))
          find(fmt::format("JSON: {}, {}: {} and not {}", one_line(place.row->contender.id), column.key,
                           dump(found), dump(value)));
        else if (shows && shown(found, quantity.show).text != cell.text)
          find(fmt::format("{}, {}: \"{}\" is {} in the JSON", one_line(place.row->contender.id),
                           column.title, cell.text, dump(found)));
      }
    });
  }

  // Every figure of a cell stands in the JSON: where the contender of the row is named, there.
  void sections(const Sheet& sheet) {
    for (size_t row = 0; row < sheet.rows.size(); ++row) {
      const Numbers numbers(scope(sheet, row));
      for (const FilledColumn& column : sheet.columns) {
        if (column.column.name || column.column.left) continue;
        const Cell& cell = column.cells[row];
        for (Figure& figure : figures_in(cell.text + ' ' + cell.range)) {
          ++out_.figures;
          figure.rough = true;  // "93%": how sure is rounded down
          if (!numbers.hold(figure))
            find(fmt::format("{}, {}, {}: \"{}\" is no figure of the JSON", sheet.name, sheet.rows[row],
                             column.column.title, figure.text));
        }
      }
    }
  }

  // The part of the JSON that is on the row's contender, where it says so; else all of the section.
  Json scope(const Sheet& sheet, size_t row) const {
    if (sheet.json.is_array()) return row < sheet.json.size() ? sheet.json[row] : Json();
    Json own = Json::array();
    for (const auto& [key, list] : sheet.json.items()) {
      if (!list.is_array()) continue;
      for (const Json& one : list) {
        const auto name = one.is_object() ? one.find("contender") : one.end();
        if (!one.is_object() || name == one.end() || !name->is_string()) continue;
        const std::string shown = label(s_.manifest.contenders, name->get<std::string>());
        if (sheet.rows[row] == shown || sheet.rows[row].starts_with(shown + ", ")) own.push_back(one);
      }
    }
    return own.empty() ? sheet.json : own;
  }

  // The columns of every table of one format; the other tables' cells are read like lines.
  void read(const std::string& format, ReadBack back, bool sentences) {
    std::set<const Sheet*> found;
    for (const ReadTable& table : back.tables) {
      const Sheet* sheet = compare(format, table);
      if (sheet) found.insert(sheet);
      for (const auto& row : table.rows) {
        if (!sheet) back.lines.insert(back.lines.end(), row.begin(), row.end());
      }
    }
    for (const Sheet& sheet : sheets_) {
      if (!found.contains(&sheet)) find(fmt::format("{}: has no table of {}", format, sheet.name));
    }
    if (sentences) lines_[format] = std::move(back.lines);
  }

  // The sheet that a table shows: that of the most heads, and of equal ones that of the fewest differences.
  const Sheet* compare(const std::string& format, const ReadTable& table) {
    const Sheet* best = nullptr;
    size_t most = 1;
    std::vector<std::string> least;
    for (const Sheet& sheet : sheets_) {
      if (sheet.rows.size() != table.rows.size()) continue;
      const std::vector<Head> heads = heads_in(sheet, table);
      const auto known = static_cast<size_t>(
          std::count_if(heads.begin(), heads.end(), [](const Head& h) { return h.column; }));
      const bool named = std::any_of(heads.begin(), heads.end(),
                                     [](const Head& h) { return h.column && h.column->column.name; });
      if (!named) continue;  // the list of bars has heads of the ranking too
      std::vector<std::string> differences = differences_of(format, sheet, table, heads);
      if (known < most || (best && known == most && differences.size() >= least.size())) continue;
      most = known;
      best = &sheet;
      least = std::move(differences);
    }
    if (most < 2) return nullptr;
    for (std::string& one : least) find(std::move(one));
    out_.figures += best->rows.size() * most;
    return best;
  }

  std::vector<std::string> differences_of(const std::string& format, const Sheet& sheet,
                                          const ReadTable& table, const std::vector<Head>& heads) const {
    std::vector<std::string> out;
    for (size_t row = 0; row < table.rows.size(); ++row) {
      for (size_t i = 0; i < heads.size(); ++i) {
        if (!heads[i].column || reads_as(table.rows[row][i], heads[i], row)) continue;
        // A page names contenders otherwise; its rows have the order of the table.
        if (heads[i].column->column.name && format == formats_.page) continue;
        out.push_back(fmt::format("{}: {}, {}, {}: \"{}\" and not \"{}\"", format, sheet.name,
                                  sheet.rows[row], heads[i].column->column.title, table.rows[row][i],
                                  expected_of(heads[i], row)));
      }
    }
    return out;
  }

  // Sentences of the JSON are lines of a format; its other texts are records, such as an error's, and their own proof.
  void keep_texts(const Json& json, const std::string& key) {
    static const std::set<std::string> kStatements = {"sentence", "notes", "advice"};
    if (json.is_object()) {
      for (const auto& [name, value] : json.items()) keep_texts(value, name);
    } else if (json.is_array()) {
      for (const Json& value : json) keep_texts(value, key);
    } else if (json.is_string() && kStatements.contains(key)) {
      lines_["JSON"].push_back(one_line(json.get<std::string>()));
    } else if (json.is_string() && key != "text") {
      for (const std::string& clause : clauses_of(one_line(json.get<std::string>())))
        records_.emplace(squeezed(clause), masked(clause).words);
    }
  }

  // By the words of a clause: of each format what numbers it says.
  using Said = std::map<std::string, std::map<std::string, std::string>>;

  void sentences() {
    std::map<std::string, Said> all;
    for (const auto& [format, lines] : lines_) {
      for (const std::string& line : lines) {
        for (const std::string& clause : clauses_of(line)) {
          // What is a record word for word needs no other proof.
          if (records_.contains(squeezed(clause))) continue;
          const Mask mask = masked(clause);
          trace(format, clause, mask);
          if (!mask.numbers.empty()) all[mask.words][format].emplace(mask.numbers, clause);
        }
      }
    }
    constexpr size_t kLeast = 4;  // letters; fewer are no statement
    for (const auto& [words, said] : all) {
      const auto letters =
          std::count_if(words.begin(), words.end(), [](unsigned char c) { return std::isalpha(c); });
      if (letters >= static_cast<std::ptrdiff_t>(kLeast)) agree(said);
    }
  }

  // Of two formats: what one says and the other does not.
  void agree(const Said& said) {
    for (auto one = said.begin(); one != said.end(); ++one) {
      out_.figures += one->second.size();
      for (auto other = std::next(one); other != said.end(); ++other) {
        std::vector<std::string> here = without(one->second, other->second);
        std::vector<std::string> there = without(other->second, one->second);
        const size_t most = std::max(here.size(), there.size());
        here.resize(most, "nothing");
        there.resize(most, "nothing");
        for (size_t i = 0; i < most; ++i)
          find(fmt::format("{}: \"{}\" is \"{}\" in {}", one->first, here[i], there[i], other->first));
      }
    }
  }

  static std::vector<std::string> without(const std::map<std::string, std::string>& these,
                                          const std::map<std::string, std::string>& those) {
    std::vector<std::string> clauses;
    for (const auto& [numbers, clause] : these) {
      if (!those.contains(numbers)) clauses.push_back(one_line(clause));
    }
    return clauses;
  }

  void trace(const std::string& format, const std::string& clause, const Mask& mask) {
    for (const Exempt& exempt : kExempt) {
      if (clause.find(exempt.words) != std::string::npos) return;
    }
    const auto record = std::find_if(records_.begin(), records_.end(),
                                     [&](const auto& one) { return one.second == mask.words; });
    for (const Figure& figure : figures_in(clause)) {
      if (figure.unit == Unit::kNone) continue;
      ++out_.figures;
      if (record != records_.end())
        find(fmt::format("{}: \"{}\" is \"{}\" in the JSON", format, clause, record->first));
      else if (!numbers_->hold(figure))
        find(fmt::format("{}: \"{}\" in \"{}\" is no figure of this run", format, figure.text, clause));
    }
  }

  const Summary& s_;
  const Formats& formats_;
  Json json_ = {};
  std::optional<Numbers> numbers_ = {};
  std::vector<Sheet> sheets_ = {};
  std::map<std::string, std::vector<std::string>> lines_ = {};  // by format
  std::map<std::string, std::string> records_ = {};             // clauses
  std::set<std::string> told_ = {};
  std::map<std::string, std::set<std::string>> values_ = {};  // by section, as a CSV writes them
  SelfCheck out_ = {};
};

}  // namespace

Formats render_formats(const Summary& s) {
  Formats formats = {
      .csv = render_csv(s), .json = render_json(s), .markdown = render_markdown(s), .html = render_html(s)};
  for (const int width : {80, 120, 200, kUnwrapped})
    formats.terminals.emplace_back(width, render_terminal(s, {.width = width}));
  return formats;
}

SelfCheck self_check(const Summary& summary, const Formats& formats) {
  return Checker(summary, formats).check();
}

}  // namespace bakeoff::report
