#pragma once

// A table as a list of quantities: each is one entry, and terminal, Markdown, HTML, CSV and JSON all render it.
//
//   const std::vector<Quantity<Lap>> kLaps = {
//       {{.key = "runner", .title = "runner", .name = true}, [](const Lap& lap) { return Json(lap.name); }},
//       {{.key = "seconds", .title = "seconds", .meaning = "Time of the lap."},
//        [](const Lap& lap) { return number(lap.seconds); }, significant},
//   };

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "table/numbers.h"

namespace bakeoff::table {

using Json = nlohmann::ordered_json;

// null where the value is not finite, or absent.
Json number(double value);
Json number(const std::optional<double>& value);
// null where it is empty.
Json text_or_null(const std::string& text);
// {"value", "low", "high"}; an end that is not bounded is null.
Json estimate(const Estimate& e);

enum class Ink { kPlain, kBold, kDim, kGood, kBad, kWarn };

struct Cell {
  std::string text = kNone;
  std::string range = {};  // bounds or a second value, shown smaller: "[75.1, 76.2]"; empty: none
  Ink ink = Ink::kPlain;
  std::string hint = {};  // HTML shows it where the pointer rests
  bool operator==(const Cell&) const = default;
};

// Which table of a page a column belongs to.
enum class Part { kMain, kCost, kResources };

// Priorities from here on are luxury: a terminal shows such a column only where there is room for all names.
inline constexpr int kLuxury = 20;

// A column of a CSV: its name, and where its value stands within the quantity's JSON ("/low"; "": all of it).
struct CsvColumn {
  std::string name = {}, pointer = {};
  bool operator==(const CsvColumn&) const = default;
};

// How a quantity is called, and where it stands. Without a key it is not in JSON (nor, where no names are stated,
// in a CSV), without a title it is for programs alone.
struct Column {
  std::string key = {};             // in JSON, "/" between objects: "memory/pss_bytes"
  std::vector<CsvColumn> csv = {};  // empty: one column, named as the key with "_" for "/"
  bool in_csv = true;               // false: in JSON alone
  std::string title = {};           // "ms/step"
  std::string meaning = {};         // one sentence that reads without the title
  int priority = 0;                 // of a terminal: 0 is always shown, the greatest goes first
  bool left = false;                // aligned; numbers stand right
  bool name = false;                // of the contender: it takes what is left of the width, and wraps
  Part part = Part::kMain;
  Ink ink = Ink::kPlain;         // of cells that state none
  std::string range_title = {};  // a terminal shows the cells' ranges in a column of this title
  int range_priority = 0;
  bool in_legend = false;        // its meaning is stated below the table, where it is shown
  bool below_name = false;       // HTML shows it below the contender's name
  bool brief = false;            // a narrow terminal shows the first word of each cell
  bool zero_is_nothing = false;  // left out where every cell reads as zero
  bool operator==(const Column&) const = default;
};

template <class Row>
struct Quantity {
  using Value = std::function<Json(const Row&)>;
  using Show = std::string (*)(double);
  using Read = std::function<Cell(const Row&)>;
  // People read the value by `show`, of an estimate with its interval; or else what `read` gives.
  Quantity(Column of, Value for_programs, Show shown_by = nullptr)
      : column(std::move(of)), value(std::move(for_programs)), show(shown_by) {}
  Quantity(Column of, Value for_programs, Read for_people)
      : column(std::move(of)), value(std::move(for_programs)), read(std::move(for_people)) {}

  Column column;
  Value value;  // absent: not for programs
  Show show = nullptr;
  Read read;
};

// `value` as people read it: a number by `show`, an estimate with its interval, a text as it is.
Cell shown(const Json& value, std::string (*show)(double));
// For a CSV: the value at `pointer`, with every digit; empty if absent.
std::string plain(const Json& value, const std::string& pointer);
// Sets `out` at `key`, whose "/" stand between objects.
void set(Json& out, const std::string& key, Json value);

using Fields = std::vector<std::pair<std::string, std::string>>;  // of a CSV: name of the column, value

template <class Row>
Cell cell_of(const Quantity<Row>& quantity, const Row& row) {
  Cell cell = quantity.read ? quantity.read(row) : shown(quantity.value(row), quantity.show);
  if (cell.ink == Ink::kPlain) cell.ink = quantity.column.ink;
  return cell;
}

template <class Row>
Json json_of(const std::vector<Quantity<Row>>& quantities, const Row& row) {
  Json out = Json::object();
  for (const Quantity<Row>& q : quantities) {
    if (!q.column.key.empty()) set(out, q.column.key, q.value(row));
  }
  return out;
}

// The columns of a CSV that a quantity is.
std::vector<CsvColumn> csv_columns(const Column& column);

// Empty values where `row` is null: the names are the same for every row.
template <class Row>
Fields fields_of(const std::vector<Quantity<Row>>& quantities, const Row* row,
                 const std::string& prefix = "") {
  Fields out;
  for (const Quantity<Row>& q : quantities) {
    const Json value = row && q.value ? q.value(*row) : Json();
    for (const CsvColumn& column : csv_columns(q.column))
      out.emplace_back(prefix + column.name, plain(value, column.pointer));
  }
  return out;
}

// A column with its cells, one a row.
struct FilledColumn {
  Column column = {};
  std::vector<Cell> cells = {};
  bool operator==(const FilledColumn&) const = default;
};

// Whether every cell that says anything reads `text`.
bool all_read(const FilledColumn& column, const std::string& text);

template <class Row>
std::vector<FilledColumn> columns_of(const std::vector<Quantity<Row>>& quantities,
                                     const std::vector<Row>& rows) {
  std::vector<FilledColumn> out;
  for (const Quantity<Row>& q : quantities) {
    if (q.column.title.empty()) continue;
    FilledColumn filled{q.column, {}};
    for (const Row& row : rows) filled.cells.push_back(cell_of(q, row));
    if (q.column.zero_is_nothing && q.show && all_read(filled, q.show(0))) continue;
    out.push_back(std::move(filled));
  }
  return out;
}

// Whether no cell says anything: "–" or empty.
bool blank(const FilledColumn& column);

}  // namespace bakeoff::table
