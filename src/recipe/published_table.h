#pragma once

// A published table beside the measured one: its order and ratios, row by row.
//
// The CSV file has a line of names and then one line a row; "#" begins a comment line, the first of which
// names the source. Column `contender` holds the id of a contender (empty: none), or several with spaces
// between them, each of which the row stands beside; column `seconds` what was published. Other columns are
// for people.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace bakeoff::recipe {

struct PublishedRow {
  std::string contender = {};
  double seconds = 0;                      // published
  double ratio = 0;                        // to the fastest of the rows that are measured here too
  int place = 0;                           // among them, from 1
  std::optional<double> measured_ms = {};  // a step; empty: it was not ranked here
  std::optional<double> measured_s = {};   // of a whole training; empty: there was none
  // Of what Published::epochs says; a row without it is in no ratio.
  std::optional<double> measured_ratio = {};
  std::optional<int> measured_place = {};
  bool operator==(const PublishedRow&) const = default;
};

struct Published {
  std::string source = {};  // the first comment of the file
  std::vector<PublishedRow> rows = {};
  double agreement = 0;  // Kendall's tau of the two orders: 1 the same, -1 reversed
  int compared = 0;      // rows with both
  int64_t epochs = 0;    // above 0: what is measured here are seconds of so many epochs; 0: steps
  bool operator==(const Published&) const = default;
};

// The rows of the text that name a contender. Errors name file, line and column.
Result<Published> parse_published(const std::string& text, const std::string& file);

}  // namespace bakeoff::recipe
