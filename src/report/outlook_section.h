#pragma once

// What an undecided race shows so far (race/outlook.h), as sections that stand before the ranking.

#include <vector>

#include "summary/summary.h"
#include "table/section.h"

namespace bakeoff::report {

// One for each group that is not decided; none where everything is.
std::vector<table::Section> outlook_sections(const Summary& summary);

}  // namespace bakeoff::report
