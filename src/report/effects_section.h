#pragma once

// The effect of each setting, others equal (summary/effects.h), as a section.

#include <optional>

#include "summary/summary.h"
#include "table/section.h"

namespace bakeoff::report {

// None where no two ranked contenders differ in one setting alone, or the verdict is refused.
std::optional<table::Section> effects_section(const Summary& summary);

}  // namespace bakeoff::report
