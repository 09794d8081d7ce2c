// Files of other programs have no rules, so columns are guessed by their names and by what their cells are
// like. A column of texts that come again and again tells series apart (apart()); a column of few whole
// numbers is a setting, such as a batch size, and no time (Kind::setting); a name that ends in "per_second"
// or "fps" is a rate, whose inverse is a time. Each guess is a note for the user, as a wrong one still gives
// a plausible series. What the user states is never guessed over.
//
// A file of pairs (columns `pair` and `side`) has more to say than two series, because each pair was measured
// together: its ratio is taken pair by pair.

#include "history/series_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/sha256.h"
#include "base/texts.h"
#include "data/csv.h"
#include "data/spec.h"
#include "stats/distributions.h"
#include "stats/trimmed.h"
#include "table/text.h"

namespace bakeoff {
namespace {

namespace fs = std::filesystem;

constexpr std::array kValueNames = {"seconds_per_step", "seconds", "value"};
constexpr std::array kTimeNames = {"started", "time", "timestamp", "date"};
// Words of a column of which more is better: it holds a rate, whose inverse is a time.
constexpr std::array kRates = {"per_s",    "per_sec",    "per_second", "/s",  "/sec", "/second",
                               "ops_s",    "throughput", "fps",        "qps", "iops", "hz",
                               "images_s", "samples_s",  "tokens_s",   "ips", "tps"};
constexpr std::array kTimes = {"s",       "ms",   "us",      "ns",       "sec",   "secs",
                               "seconds", "time", "latency", "duration", "median"};
constexpr size_t kMostSeries = 1000;
constexpr size_t kMostColumns = 10'000;
// Columns that say something of a row, and hold no series.
constexpr std::array kOthers = {
    "line",     "name",      "machine", "run",    "series",  "low",   "high",
    "level",    "shift",     "host",    "commit", "verdict", "dirty", "bakeoff_version",
    "packages", "directory", "note",    "branch", "version", "pair",  "side"};

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

// "ops_per_second", "fps": a word of it, at its end or of its own.
bool has_word(const std::string& column, std::span<const char* const> words) {
  const std::string name = lowered(column);
  return std::ranges::any_of(words, [&](const std::string word) {
    const size_t at = name.rfind(word);
    if (at == std::string::npos) return false;
    const size_t end = at + word.size();
    const auto apart = [&](size_t i) { return std::isalnum(static_cast<unsigned char>(name[i])) == 0; };
    const bool begins = at == 0 || apart(at - 1) || !std::isalpha(static_cast<unsigned char>(word[0]));
    return begins && (end == name.size() || apart(end));
  });
}

bool is_rate(const std::string& column) { return has_word(column, kRates); }

// A file's table, with the columns that are known.
class Columns {
 public:
  Columns(const FileTable& table, std::string where) : table_(table), where_(std::move(where)) {
    for (const std::string& name : table.header.cells) names_.push_back(table::one_line(trimmed(name)));
  }

  Status check() const {
    if (names_.size() > kMostColumns)
      return Error{.message = fmt::format("has {} columns, more than {}", names_.size(), kMostColumns),
                   .where = where_ + ":1",
                   .remedy = "leave out those that hold no series"};
    std::set<std::string> different;
    for (const std::string& name : names_)
      if (!different.insert(name).second)
        return Error{.message = fmt::format("two columns are called '{}'", name),
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

  Result<size_t> named(const std::string& name) const {
    if (const auto at = find(name)) return *at;
    return Error{.message = fmt::format("it has no column '{}'", name),
                 .where = where_ + ":1",
                 .remedy = fmt::format("its columns are: {}", join(names_, ", "))};
  }

  // Those whose texts tell series apart: of other names than ours, and with each text in several rows; of a host, if
  // rows of one lie between rows of another.
  std::vector<size_t> apart() const {
    std::vector<size_t> found;
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto known = [&](const char* name) { return names_[i] == name; };
      const bool ours = std::ranges::any_of(kOthers, known) || std::ranges::any_of(kTimeNames, known) ||
                        std::ranges::any_of(kValueNames, known);
      if (ours && names_[i] != "host" && names_[i] != "branch" && names_[i] != "version" &&
          names_[i] != "side")
        continue;
      const Kind kind = kind_of(i);
      const bool repeated =
          kind.texts > 1 && 2 * kind.texts <= kind.rows && (kind.numbers < kind.rows || kind.setting());
      if (repeated && (!ours || kind.changes > 2 * kind.texts)) found.push_back(i);
    }
    return found;
  }

  // Those with the values of a series.
  Result<std::vector<size_t>> values() const {
    if (const auto one = find(kValueNames)) return std::vector{*one};
    std::vector<size_t> found;
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto known = [&](const char* name) { return names_[i] == name; };
      if (std::ranges::any_of(kOthers, known) || std::ranges::any_of(kTimeNames, known)) continue;
      if (kind_of(i).numbers > 0) found.push_back(i);
    }
    // Where another column may hold the time, whole numbers of which there are few are settings: batch, threads.
    std::vector<size_t> times = found;
    std::erase_if(times, [&](size_t column) { return kind_of(column).setting(); });
    if (!times.empty()) return times;
    if (!found.empty()) return found;
    return Error{.message = fmt::format("no column holds a time: {}", join(names_, ", ")),
                 .where = where_ + ":1",
                 .remedy = "call it 'seconds'; `bakeoff help docs/history.md` names all columns"};
  }

 private:
  // What a column's cells are like.
  struct Kind {
    size_t rows = 0, numbers = 0, whole = 0;  // all cells, numbers, whole numbers
    size_t texts = 0, changes = 0;  // texts that differ, and rows with another one than the row before
    bool measure = false;           // its name says that it holds a time or a rate
    bool setting() const { return !measure && rows > 0 && whole == rows && texts <= 16 && 4 * texts <= rows; }
  };
  Kind kind_of(size_t column) const {
    Kind kind;
    std::set<std::string> texts;
    std::string before;
    for (const FileRow& row : table_.rows) {
      if (empty(row)) continue;
      const std::string text(trimmed(row.cells[column]));
      const auto number = number_in(text);
      kind.changes += kind.rows++ > 0 && text != before;
      kind.numbers += number.has_value();
      kind.whole += number && *number == std::floor(*number);
      texts.insert(before = text);
    }
    kind.texts = texts.size();
    kind.measure = is_rate(names_[column]) || has_word(names_[column], kTimes);
    return kind;
  }

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

// Where the file is a table of pairs: two sides, and each pair has a time of both.
std::optional<Pairs> pairs_of(const FileTable& table, const Columns& columns, size_t value,
                              double unit_sign) {
  const auto pair = columns.find("pair"), side = columns.find("side");
  if (!pair || !side) return std::nullopt;
  Pairs found;
  std::map<std::string, std::array<double, 2>> logs;
  for (const FileRow& row : table.rows) {
    if (Columns::empty(row)) continue;
    const std::string name = table::one_line(trimmed(row.cells[*side]));
    const auto number = number_in(row.cells[value]);
    if (found.base.empty()) found.base = name;
    if (name != found.base && found.head.empty()) found.head = name;
    if (!number || *number <= 0 || (name != found.base && name != found.head)) return std::nullopt;
    auto& both = logs.try_emplace(row.cells[*pair], std::array<double, 2>{NAN, NAN}).first->second;
    both[name == found.base ? 0 : 1] = unit_sign * std::log(*number);
  }
  std::vector<double> d;
  for (const auto& [id, both] : logs)
    if (std::isfinite(both[0]) && std::isfinite(both[1])) d.push_back(both[1] - both[0]);
  if (found.head.empty() || d.empty()) return std::nullopt;
  found.pairs = static_cast<int64_t>(d.size());
  const double mean = stats::mean(d);
  const double half = d.size() < 2 ? INFINITY
                                   : stats::student_quantile(static_cast<double>(d.size() - 1), 0.995) *
                                         std::sqrt(stats::variance(d) / static_cast<double>(d.size()));
  found.ratio = {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
  return found;
}

// The columns of values, the columns that separate series, and which of these were guessed.
struct Chosen {
  std::vector<size_t> values = {}, by = {};
  std::vector<std::string> notes = {};
};

Result<Chosen> chosen_columns(const Columns& columns, const SeriesColumns& asked) {
  Chosen chosen;
  auto& [values, by, notes] = chosen;
  if (asked.time.empty()) {
    TRY(values, columns.values());
  } else {
    TRY(const size_t one, columns.named(asked.time));
    values = {one};
  }
  for (const std::string& name : asked.by) {
    TRY(const size_t one, columns.named(name));
    by.push_back(one);
  }
  if (asked.by.empty() && !columns.find("name") && !columns.find("line")) {
    by = columns.apart();
    std::erase_if(by, [&](size_t column) { return std::ranges::find(values, column) != values.end(); });
    std::vector<std::string> names;
    for (const size_t column : by) names.push_back("'" + columns.name(column) + "'");
    if (!names.empty())
      notes.push_back(
          fmt::format("rows that differ in {} are of different series (--by COLUMN says it otherwise)",
                      join(names, ", ")));
  }
  for (const size_t column : values) {
    const bool known = std::ranges::find(kValueNames, columns.name(column)) != kValueNames.end();
    if (is_rate(columns.name(column)))
      notes.push_back(fmt::format("'{}' is taken for a rate, of which more is better: times are 1 / {}",
                                  columns.name(column), columns.name(column)));
    else if (!known && asked.time.empty())
      notes.push_back(
          fmt::format("'{}' is taken for a time (--time COLUMN says it otherwise)", columns.name(column)));
  }
  return chosen;
}

}  // namespace

Result<FileOfSeries> read_series(const fs::path& file, const SeriesColumns& asked) {
  TRY(const FileTable table, parsed(file));
  const Columns columns(table, file.string());
  CHECK_OK(columns.check());
  TRY(Chosen chosen, chosen_columns(columns, asked));
  const std::vector<size_t>&values = chosen.values, &by = chosen.by;
  FileOfSeries read{.notes = std::move(chosen.notes)};
  if (values.size() == 1)
    read.pairs = pairs_of(table, columns, values.front(), is_rate(columns.name(values.front())) ? -1 : 1);
  std::map<std::string, FileSeries> found;
  for (const FileRow& row : in_order(table, columns)) {
    TRY(const std::string packages, packages_of(row, columns, file.string()));
    for (const size_t column : values) {
      if (trimmed(row.cells[column]).empty()) continue;
      TRY(const double value, value_of(row, column, columns, file.string()));
      const bool rate = is_rate(columns.name(column));
      std::string name = columns.cell(row, "name");
      for (const size_t one : by)
        name += (name.empty() ? "" : " ") + table::one_line(trimmed(row.cells[one]));
      if (values.size() > 1) name += (name.empty() ? "" : " ") + columns.name(column);
      if (name.empty()) name = columns.find(kValueNames) ? file.stem().string() : columns.name(column);
      // One name on two machines is two series.
      const std::string machine = columns.cell(row, "machine");
      const std::string key = name + '\n' + machine + '\n' + columns.cell(row, "line");
      auto& series = found.try_emplace(key, named(name, key, machine, file)).first->second;
      if (found.size() > kMostSeries)
        return Error{.message = fmt::format("has more than {} series", kMostSeries),
                     .where = fmt::format("{}:{}", file.string(), row.line),
                     .remedy = "--by COLUMN names the columns that tell series apart"};
      series.points.push_back(point_of(row, rate ? 1 / value : value, rate ? 1 : asked.unit, columns));
      if (rate) series.points.back().low = series.points.back().high = std::nullopt;
      series.points.back().packages = packages;
    }
  }
  for (auto& [key, series] : found) {
    series.line.runs = static_cast<int64_t>(series.points.size());
    series.line.series = 1;
    series.line.first = series.points.front().started;
    series.line.latest = series.points.back().started;
    read.series.push_back(std::move(series));
  }
  if (!read.series.empty()) return read;
  return Error{.message = "no row has a time", .where = file.string(), .remedy = "one at least"};
}

}  // namespace bakeoff
