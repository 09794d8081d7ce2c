#pragma once

// The tables of a suite as sections, which all formats render.

#include <string>
#include <vector>

#include "suite/suite_table.h"
#include "table/section.h"

namespace bakeoff::report {

// First models by contenders, with the geometric mean as its last row; then the same against the baseline, where
// there is one. Rows without cells have their reason as a note. No cell is left out.
std::vector<table::Section> suite_sections(const suite::Table& table);

// Which intervals hold together, over which rows the mean is, and who has none and why.
std::string suite_legend(const suite::Table& table);

inline constexpr const char* kMeanRow = "geometric mean";
inline constexpr const char* kSurely = "●";  // surely the fastest of its row
inline constexpr const char* kMayBe = "○";   // may be the fastest of its row

}  // namespace bakeoff::report
