#pragma once

// The machines of a fleet's race, and what the two best contenders differ by on each.

#include <optional>
#include <vector>

#include "summary/summary.h"
#include "table/section.h"

namespace bakeoff {

int count_nodes(const std::vector<Trial>& trials);  // 0: the race was no fleet's

// Nothing for a race of one machine. Needs the ranked rows of `s`.
std::optional<table::Section> nodes_section(const Summary& s, const std::vector<Trial>& trials);

}  // namespace bakeoff
