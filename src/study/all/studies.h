#pragma once

// All studies, in the order in which they follow the race and stand in a report.

#include <vector>

#include "study/study.h"

namespace bakeoff {

const std::vector<Study>& studies();

}  // namespace bakeoff
