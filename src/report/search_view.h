#pragma once

// The search for the best batch as texts and as a picture, the same for terminal, Markdown, CSV and HTML.

#include <string>
#include <utility>
#include <vector>

#include "report/table.h"
#include "report/view.h"
#include "summary/summary.h"

namespace bakeoff::report {

struct SearchCells {
  std::string name;
  std::string best;    // batch, "256"
  std::string rate;    // samples/s there, "3,386"
  std::string range;   // of the processes there, "3,310 to 3,402"; "–" of one process
  std::string enough;  // the least batch within the margin
  std::string tried;   // "16 to 1,024 (7)"
  std::string note;
};
std::vector<SearchCells> search_cells(const Summary& summary);

std::string search_legend(const Summary& summary);

std::vector<Column> search_columns(const Summary& summary);  // for the terminal

// Columns of a CSV for one contender: name and value, the same names for each. None where nothing was
// searched.
std::vector<std::pair<std::string, std::string>> search_fields(const Summary& summary,
                                                               const std::string& contender);

// Samples a second over the batch, which is logarithmic, one line a contender, with the range over its
// processes; the best batch is filled. Empty text where nothing was searched.
std::string batch_chart(const Summary& summary, double width);

// Lists "search_batches", "search" and "search_legend_rows", flag has_search.
void add_search(const Summary& summary, View& page);

}  // namespace bakeoff::report
