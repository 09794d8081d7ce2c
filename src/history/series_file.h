#pragma once

// Series that other programs measured, from a CSV file with a header. The index keeps nothing of them.
//
//   TRY(auto read, read_series("times.csv", {.unit = 1e-3}));   // values in milliseconds
//   const History history = history_of(read.series[0].line, std::move(read.series[0].points));

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "history/history.h"
#include "table/numbers.h"

namespace bakeoff {

struct FileSeries {
  store::Line line = {};
  std::vector<store::LinePoint> points = {};  // oldest first
};

// What the user says of a file's columns; what is empty is guessed.
struct SeriesColumns {
  double unit = 1;                   // seconds of one unit of its times
  std::string time = {};             // column that holds the times
  std::vector<std::string> by = {};  // columns whose texts tell series apart
};

// A table of pairs: columns `pair` and `side`, and two times for each pair.
struct Pairs {
  std::string base = {}, head = {};  // the sides, in the order of the file
  Estimate ratio = {};  // head / base, from the logarithms by Student's t at 99%; open ends with one pair
  int64_t pairs = 0;
};

struct FileOfSeries {
  std::vector<FileSeries> series = {};
  std::optional<Pairs> pairs = {};
  std::vector<std::string> notes = {};  // what was guessed
};

// Columns are known by their names in the header, in any order:
//   value, seconds, seconds_per_step   the time, in `unit` seconds, above 0
//   name                               the series of a row; without it a file has one, called as the file is
//   machine, line                      rows that differ here are different series, also under one name
//   started, time, timestamp, date     numbers (from 10^6 on seconds since 1970) or ISO 8601: rows are sorted by it;
//                                      without it, or where any is neither, they are in order of time
//   run, commit, host, bakeoff_version, packages (a JSON object), note, low, high
//   shift                              "accepted": an accepted step begins here
// A file without a column for the time has one series for each other column whose cells are numbers. Columns of rates
// (ops_per_second, throughput, fps) are read as their inverse. Without `name` and `line`, columns of texts that come
// again and again tell series apart. Rows without a value are left out. What `bakeoff history --csv` prints is such a file. Error: with the file and the line of it.
Result<FileOfSeries> read_series(const std::filesystem::path& file, const SeriesColumns& asked = {});

}  // namespace bakeoff
