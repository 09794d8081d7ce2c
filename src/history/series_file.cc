#include "history/series_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/sha256.h"
#include "base/texts.h"
#include "data/csv.h"
#include "data/spec.h"
#include "table/text.h"

namespace bakeoff {
namespace {

namespace fs = std::filesystem;

constexpr std::array kValueNames = {"seconds_per_step", "seconds", "value"};
constexpr std::array kTimeNames = {"started", "time", "timestamp", "date"};
// Columns that say something of a row, and hold no series.
constexpr std::array kOthers = {
    "line",     "name",      "machine", "run",    "series",  "low",   "high",
    "level",    "shift",     "host",    "commit", "verdict", "dirty", "bakeoff_version",
    "packages", "directory", "note",    "branch", "version"};

struct FileRow {
  int64_t line = 0;  // of the file
  std::vector<std::string> cells = {};
};

struct FileTable {
  FileRow header = {};
  std::vector<FileRow> rows = {};
};

Result<FileTable> parsed(const fs::path& file) {
  FileTable table;
  CHECK_OK(read_csv(
      file, ',', DataSpec{}.expansion, [&](const std::vector<std::string>& fields, int64_t line) -> Status {
        (table.header.line == 0 ? table.header : table.rows.emplace_back()) = {.line = line, .cells = fields};
        return Done{};
      }));
  if (!table.rows.empty()) return table;
  return Error{.message = "has no rows below a header",
               .where = file.string(),
               .remedy = "for example a first line 'time,commit,seconds', then a line for each measurement"};
}

std::optional<double> number_in(const std::string& cell) {
  const std::string text(trimmed(cell));
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// A file's table, with the columns that are known.
class Columns {
 public:
  Columns(const FileTable& table, std::string where) : table_(table), where_(std::move(where)) {
    for (const std::string& name : table.header.cells) names_.push_back(table::one_line(trimmed(name)));
  }

  Status check() const {
    for (size_t i = 0; i < names_.size(); ++i)
      if (std::find(names_.begin(), names_.begin() + static_cast<long>(i), names_[i]) !=
          names_.begin() + static_cast<long>(i))
        return Error{.message = fmt::format("two columns are called '{}'", names_[i]),
                     .where = where_ + ":1",
                     .remedy = "give each a name of its own"};
    for (const FileRow& row : table_.rows)
      if (row.cells.size() != names_.size() && !empty(row))
        return Error{
            .message = fmt::format("has {} cells, and the header {}", row.cells.size(), names_.size()),
            .where = fmt::format("{}:{}", where_, row.line),
            .remedy = "every row has a cell for each column; an empty one where nothing is known"};
    return Done{};
  }

  static bool empty(const FileRow& row) {
    return std::ranges::all_of(row.cells, [](const std::string& cell) { return trimmed(cell).empty(); });
  }

  std::optional<size_t> find(std::string_view name) const {
    const auto at = std::ranges::find(names_, name);
    return at == names_.end() ? std::nullopt : std::optional(static_cast<size_t>(at - names_.begin()));
  }
  std::optional<size_t> find(std::span<const char* const> any) const {
    for (const char* name : any)
      if (const auto at = find(name)) return at;
    return std::nullopt;
  }
  // Without what a terminal would obey: the file may be anybody's.
  std::string cell(const FileRow& row, std::string_view name) const {
    const auto at = find(name);
    return at ? table::one_line(row.cells[*at]) : std::string();
  }
  const std::string& name(size_t column) const { return names_[column]; }

  // Those with the values of a series.
  Result<std::vector<size_t>> values() const {
    if (const auto one = find(kValueNames)) return std::vector{*one};
    std::vector<size_t> found;
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto known = [&](const char* name) { return names_[i] == name; };
      if (std::ranges::any_of(kOthers, known) || std::ranges::any_of(kTimeNames, known)) continue;
      const auto number = [&](const FileRow& row) { return !empty(row) && number_in(row.cells[i]); };
      if (std::ranges::any_of(table_.rows, number)) found.push_back(i);
    }
    if (!found.empty()) return found;
    return Error{.message = fmt::format("no column holds a time: {}", join(names_, ", ")),
                 .where = where_ + ":1",
                 .remedy = "call it 'seconds'; `bakeoff help docs/history.md` names all columns"};
  }

 private:
  const FileTable& table_;
  std::string where_;
  std::vector<std::string> names_;
};

Result<double> value_of(const FileRow& row, size_t column, const Columns& columns, const std::string& where) {
  const auto value = number_in(row.cells[column]);
  if (value && *value > 0) return *value;
  return Error{.message = fmt::format("'{}' is no time above 0, in the column '{}'", row.cells[column],
                                      columns.name(column)),
               .where = fmt::format("{}:{}", where, row.line),
               .remedy = "an empty cell where nothing was measured"};
}

// Seconds since 1970 as a date; dates as they are.
std::string date_of(const std::string& cell) {
  const auto seconds = number_in(cell);
  if (!seconds || *seconds < 1e6 || *seconds > 2.5e11) return table::one_line(trimmed(cell));
  return utc_text(static_cast<int64_t>(*seconds));
}

// Whether it begins as dates of ISO 8601 do, whose order is that of their texts.
bool is_iso_date(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:";
  for (size_t i = 0; i < std::min(text.size(), kShape.size()); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (kShape[i] == '0' ? !digit : text[i] != kShape[i] && !(i == 10 && text[i] == ' ')) return false;
  }
  return text.size() == 10 || text.size() >= kShape.size();
}

// The rows that hold anything, in order of time where all of their times are numbers, or all are ISO 8601.
std::vector<FileRow> in_order(const FileTable& table, const Columns& columns) {
  std::vector<FileRow> rows;
  std::ranges::remove_copy_if(table.rows, std::back_inserter(rows), Columns::empty);
  const auto time = columns.find(kTimeNames);
  if (!time) return rows;
  const auto number = [&](const FileRow& row) { return number_in(row.cells[*time]); };
  const auto text = [&](const FileRow& row) { return trimmed(row.cells[*time]); };
  if (std::ranges::all_of(rows, [&](const FileRow& row) { return number(row).has_value(); }))
    std::ranges::stable_sort(rows, {}, number);
  else if (std::ranges::all_of(rows, [&](const FileRow& row) { return is_iso_date(text(row)); }))
    std::ranges::stable_sort(rows, {}, text);
  return rows;
}

Result<std::string> packages_of(const FileRow& row, const Columns& columns, const std::string& where) {
  const std::string text = columns.cell(row, "packages");
  if (trimmed(text).empty()) return std::string("{}");
  if (parse_json<nlohmann::json>(text).is_object()) return text;
  return Error{.message = fmt::format("'{}' is no JSON object, in the column 'packages'", text),
               .where = fmt::format("{}:{}", where, row.line),
               .remedy = R"(versions by name: "{""numpy"": ""2.3.1""}")"};
}

store::LinePoint point_of(const FileRow& row, double seconds, double unit, const Columns& columns) {
  const auto bound = [&](const char* name) {
    auto value = number_in(columns.cell(row, name));
    if (value) *value *= unit;
    return value;
  };
  const auto time = columns.find(kTimeNames);
  store::LinePoint point{.run = columns.cell(row, "run"),
                         .started = time ? date_of(row.cells[*time]) : fmt::format("line {}", row.line),
                         .seconds = seconds * unit,
                         .low = bound("low"),
                         .high = bound("high"),
                         .host = columns.cell(row, "host"),
                         .commit = columns.cell(row, "commit"),
                         .bakeoff_version = columns.cell(row, "bakeoff_version"),
                         .note = columns.cell(row, "note")};
  if (point.run.empty()) point.run = fmt::format("line{}", row.line);
  if (columns.cell(row, "shift") == "accepted") point.accepted = point.note;
  return point;
}

FileSeries named(const std::string& name, const std::string& key, const std::string& machine,
                 const fs::path& file) {
  return {.line = {.id = sha256(file.string() + '\n' + key).substr(0, 16),
                   .name = name,
                   .recipe = file.stem().string(),
                   .contender = name,
                   .machine = machine.empty() ? "as the file says" : machine,
                   .measured = "time of " + file.filename().string()}};
}

}  // namespace

Result<std::vector<FileSeries>> read_series(const fs::path& file, double unit) {
  TRY(const FileTable table, parsed(file));
  const Columns columns(table, file.string());
  CHECK_OK(columns.check());
  TRY(const auto values, columns.values());
  std::map<std::string, FileSeries> found;
  for (const FileRow& row : in_order(table, columns)) {
    TRY(const std::string packages, packages_of(row, columns, file.string()));
    for (const size_t column : values) {
      if (trimmed(row.cells[column]).empty()) continue;
      TRY(const double value, value_of(row, column, columns, file.string()));
      std::string name = columns.cell(row, "name");
      if (values.size() > 1) name += (name.empty() ? "" : " ") + columns.name(column);
      if (name.empty()) name = columns.find(kValueNames) ? file.stem().string() : columns.name(column);
      // One name on two machines is two series.
      const std::string machine = columns.cell(row, "machine");
      const std::string key = name + '\n' + machine + '\n' + columns.cell(row, "line");
      auto& series = found.try_emplace(key, named(name, key, machine, file)).first->second;
      series.points.push_back(point_of(row, value, unit, columns));
      series.points.back().packages = packages;
    }
  }
  std::vector<FileSeries> all;
  for (auto& [key, series] : found) {
    series.line.runs = static_cast<int64_t>(series.points.size());
    series.line.series = 1;
    series.line.first = series.points.front().started;
    series.line.latest = series.points.back().started;
    all.push_back(std::move(series));
  }
  if (!all.empty()) return all;
  return Error{.message = "no row has a time", .where = file.string(), .remedy = "one at least"};
}

}  // namespace bakeoff
