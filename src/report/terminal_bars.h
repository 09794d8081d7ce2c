#pragma once

// The contenders of the first screen as lines of a terminal: name, throughput, a bar, the comparison, a word.

#include <string>
#include <vector>

#include "report/first_screen.h"

namespace bakeoff::report {

// Lines of at most `width` columns. A narrow terminal has shorter bars and leaves the range of the comparison out.
std::vector<std::string> bars(const FirstScreen& screen, int width, bool colour);

}  // namespace bakeoff::report
