#pragma once

// Series that other programs measured, from a CSV file with a header. The index keeps nothing of them.
//
//   TRY(auto series, read_series("times.csv", 1e-3));   // values in milliseconds
//   const History history = history_of(series[0].line, std::move(series[0].points));

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "history/history.h"

namespace bakeoff {

struct FileSeries {
  store::Line line = {};
  std::vector<store::LinePoint> points = {};  // oldest first
};

// Columns are known by their names in the header, in any order:
//   value, seconds, seconds_per_step   the time, in `unit` seconds, above 0
//   name                               the series of a row; without it a file has one, called as the file is
//   machine, line                      rows that differ in them are of two series, whatever their name
//   started, time, timestamp, date     numbers (from 10^6 on seconds since 1970) or ISO 8601: rows are sorted by it;
//                                      without it, or where any is neither, they are in order of time
//   run, commit, host, bakeoff_version, packages (a JSON object), note, low, high
//   shift                              "accepted": an accepted step begins here
// A file without a column for the time has one series for each other column whose cells are numbers. Rows without a
// value are left out. What `bakeoff history --csv` prints is such a file. Error: with the file and the line of it.
Result<std::vector<FileSeries>> read_series(const std::filesystem::path& file, double unit = 1);

}  // namespace bakeoff
