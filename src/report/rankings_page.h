#pragma once

// Rankings of several runs side by side as one self-contained HTML file, in the style of a suite's page.

#include <string>

#include "regression/rankings.h"

namespace bakeoff::report {

std::string render_rankings_page(const regression::Rankings& rankings);

}  // namespace bakeoff::report
