#pragma once

// All studies, in the order in which they follow the race and stand in a report.

#include <vector>

#include "study/study.h"

namespace bakeoff {

const std::vector<Study>& studies();
// The tables of the studies that a recipe asks for, as it writes them: "[fit]".
std::vector<std::string> wanted_studies(const recipe::Recipe& recipe);

}  // namespace bakeoff
