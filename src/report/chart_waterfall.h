#pragma once

// From the time of one sample as it is, cause by cause, to the time with all changes.

#include <string>

#include "explain/explain.h"

namespace bakeoff::report {

// Empty where no cause is named.
std::string waterfall_chart(const explain::Explanation& explanation, double width);

}  // namespace bakeoff::report
