#pragma once

// A published table beside the measured one (summary/published.h), as texts.

#include <string>
#include <vector>

#include "recipe/published_table.h"
#include "summary/summary.h"

namespace bakeoff::report {

struct BesideRow {
  std::string contender;
  std::string seconds, place, ratio;                 // published
  std::string here, measured_place, measured_ratio;  // "–" where it was not measured
};
// In the published order; rows of contenders that the recipe does not name are left out.
std::vector<BesideRow> beside_rows(const Summary& summary);

// What "here" is: "ms/step here"; of whole trainings "41 epochs here".
std::string beside_title(const recipe::Published& published);

// "The orders agree in 9 of 10 pairs of rows (Kendall's tau 0.80 over 5 rows). Published: ..."
std::string beside_statement(const recipe::Published& published);

std::string beside_markdown(const Summary& summary);
// Lines of a table; `width` columns at most.
std::vector<std::string> beside_lines(const Summary& summary, int width, bool colour);

}  // namespace bakeoff::report
