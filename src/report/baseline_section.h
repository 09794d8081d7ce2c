#pragma once

// Every contender against the baseline (summary/baseline.h), as a section with a bar chart.

#include <optional>
#include <string>

#include "summary/summary.h"
#include "table/section.h"

namespace bakeoff::report {

// None where there is no baseline. If the baseline is not ranked, the section says why and has no rows.
std::optional<table::Section> baseline_section(const Summary& summary);

// What the intervals of pairs promise, for a legend.
std::string together_statement(const Summary& summary);

// "1.32", with its interval as range; "≥ 10.0" of a bound.
table::Cell speed_cell(const std::optional<PairRatio>& ratio, const Estimate& speed, PairVerdict verdict);

}  // namespace bakeoff::report
