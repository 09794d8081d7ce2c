#pragma once

// A published table that is compared with the measured one: its order and ratios, row by row.
//
// The CSV file has a line of column names and then one line for each row. A line that begins with "#" is a
// comment; the first one names the source. Column `contender` holds the id of a contender (empty: none), or
// several ids separated by spaces; the row is compared with each. Column `seconds` holds the published
// time. Other columns are for people.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace bakeoff::recipe {

struct PublishedRow {
  std::string contender = {};
  double seconds = 0;                      // published time
  double ratio = 0;                        // to the fastest published row that is measured here too
  int place = 0;                           // among those rows, from 1
  std::optional<double> measured_ms = {};  // measured time of a step; empty: it was not ranked here
  std::optional<double> measured_s = {};   // measured time of a whole training; empty: there was none
  // Ratio and place of the measured time that Published::epochs names; a row without it has neither.
  std::optional<double> measured_ratio = {};
  std::optional<int> measured_place = {};
  bool operator==(const PublishedRow&) const = default;
};

struct Published {
  std::string source = {};  // the first comment of the file
  std::vector<PublishedRow> rows = {};
  double agreement = 0;  // Kendall's tau of the two orders: 1 the same, -1 reversed
  int compared = 0;      // number of rows with a published and a measured time
  int64_t epochs = 0;    // above 0: the measured time is that of this number of epochs; 0: of a step
  bool operator==(const Published&) const = default;
};

// The rows of the text that name a contender. Errors name file, line and column.
Result<Published> parse_published(const std::string& text, const std::string& file);

}  // namespace bakeoff::recipe
