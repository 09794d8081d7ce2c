#pragma once

// A table that adapts to the width of a terminal: columns of low priority go first, then names wrap.

#include <string>
#include <vector>

#include "table/quantity.h"

namespace bakeoff::report {

// `text` in that ink as ANSI, or as it is.
std::string paint(const std::string& text, table::Ink ink, bool colour);

// The columns that `width` has room for; ranges of cells become columns of their own. Columns that may go and
// without any text but "–" are left out, then those of the greatest priority until the rest fits.
std::vector<table::FilledColumn> choose_columns(const std::vector<table::FilledColumn>& columns, int width);

// Lines without trailing spaces, each at most `width` columns, under a header and a rule.
std::vector<std::string> layout(const std::vector<table::FilledColumn>& columns, int width, bool colour);

}  // namespace bakeoff::report
