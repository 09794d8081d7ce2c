#pragma once

// A suite's table as one self-contained HTML file, in the style of the report of a race.

#include <string>

#include "suite/suite_table.h"

namespace bakeoff::report {

std::string render_suite_page(const suite::Table& table);

}  // namespace bakeoff::report
