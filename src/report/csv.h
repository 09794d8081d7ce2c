#pragma once

// One record a contender as RFC 4180 CSV (comma, CRLF, quotes doubled), ranked ones first; the first record
// names the columns. Numbers are in full precision with the unit in the column's name; what is not known or
// not finite is empty. Columns are only ever added at the end.

#include <string>
#include <vector>

#include "summary/summary.h"
#include "table/quantity.h"

namespace bakeoff::report {

std::string render_csv(const Summary& summary);

// Rows whose names are those of the first.
std::string render_csv(const std::vector<table::Fields>& rows);

}  // namespace bakeoff::report
