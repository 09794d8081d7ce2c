#pragma once

// The answer of `bakeoff explain` as one self-contained HTML file, in the style of the report of a race.

#include <string>

#include "explain/explain.h"

namespace bakeoff::report {

std::string render_explanation(const explain::Explanation& explanation);

}  // namespace bakeoff::report
