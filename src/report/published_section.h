#pragma once

// The published table against what was measured (summary/published.h), as a section.

#include <optional>
#include <vector>

#include "summary/summary.h"
#include "table/section.h"

namespace bakeoff::report {

// In the published order; rows of contenders that the recipe does not name are left out of the table. None
// where there is no published table, or none of its rows is named.
std::optional<table::Section> published_section(const Summary& summary);

// All tables below the ranking, in their order: against the baseline, effects of settings, the published one, then
// those of the studies.
std::vector<table::Section> sections_of(const Summary& summary);

}  // namespace bakeoff::report
