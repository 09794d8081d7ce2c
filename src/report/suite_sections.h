#pragma once

// The tables of a suite as sections, which all formats render.

#include <string>
#include <vector>

#include "suite/suite_table.h"
#include "table/section.h"

namespace bakeoff::report {

// First a row for each contender and a column for each recipe, with the geometric mean as the last column and the least
// step time as the last row; then the same against the baseline, where there is one. What is to be said of a recipe is a
// sentence of the first. No cell is left out.
std::vector<table::Section> suite_sections(const suite::Table& table);

// Which intervals hold together, over which races the mean is, and which contender has none and why.
std::string suite_legend(const suite::Table& table);

inline constexpr const char* kMeanColumn = "geometric mean";
inline constexpr const char* kLeastRow = "fastest, ms/step";
inline constexpr const char* kSurely = "●";  // surely the fastest of its recipe
inline constexpr const char* kMayBe = "○";   // may be the fastest of its recipe
inline constexpr const char* kNoHeat = "no heat";

}  // namespace bakeoff::report
