#pragma once

// The quantities of the ranking: a column is one entry of this list, and terminal, Markdown, HTML, CSV and JSON
// render it (docs/adding_a_column.md).

#include <optional>
#include <string>
#include <vector>

#include "summary/summary.h"
#include "table/quantity.h"

namespace bakeoff::report {

// A row and what it stands in.
struct Place {
  const Summary* summary = nullptr;
  const Row* row = nullptr;
  bool ranked = false;
};

std::vector<table::Quantity<Place>> ranking_quantities(const Summary& summary);

// Samples per second; an end that the evidence does not bound is open.
struct Rate {
  double value = 0, low = 0, high = 0;
  bool open_low = false, open_high = false;
  bool interval = false;  // the leader has none: it is what the others are compared with
};

// The leader's throughput over the interval of the ratio; nothing of a row that was not timed.
std::optional<Rate> rate_of(const Summary& summary, const Row& row);

// What people read of one row, for the pictures; a row that was not timed has bounds: "≥ 10.0".
table::Cell ratio_cell(const Summary& summary, const Row& row);
table::Cell step_time_cell(const Row& row);
std::string rank_range(const Row& row);  // "1", "2–4"

// The columns for people, filled with the ranked rows; columns without any value are left out.
std::vector<table::FilledColumn> ranking_columns(const Summary& summary);

}  // namespace bakeoff::report
