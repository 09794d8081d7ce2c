#pragma once

// The largest batches that fit into memory as texts, the same for terminal, Markdown, CSV and HTML.

#include <string>
#include <utility>
#include <vector>

#include "report/table.h"
#include "report/view.h"
#include "summary/summary.h"

namespace bakeoff::report {

struct LargestCells {
  std::string name;
  std::string largest;     // batch, "6,144"
  std::string fails_at;    // "6,400"; "–" where none failed
  std::string peak;        // of memory at the largest, "3.81 GiB"
  std::string per_sample;  // slope of the peak over the batch, "0.61 MiB"
  std::string limit;       // "4.00 GiB"; "the device's"
  std::string note;        // what stopped the next
};
std::vector<LargestCells> largest_cells(const Summary& summary);

std::string largest_legend();

std::vector<Column> largest_columns(const Summary& summary);  // for the terminal

// Columns of a CSV for one contender: name and value, the same names for each. None where nothing was
// searched.
std::vector<std::pair<std::string, std::string>> largest_fields(const Summary& summary,
                                                                const std::string& contender);

// List "largest", text largest_legend, flag has_largest.
void add_largest(const Summary& summary, View& page);

}  // namespace bakeoff::report
