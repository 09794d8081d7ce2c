#pragma once

// The result for a terminal: the verdict first, then the table, then what was not ranked and why, then notes.
//
//   fputs(render_terminal(summary, {.width = 120, .colour = isatty(1)}).c_str(), stdout);
//
// The table takes the columns that the width has room for: at 80 the rank range, contender, ms/step, ratio
// with interval, first step and parity; at 200 all. Long names are wrapped within their column, never cut. No
// line is wider than `width` (at least 40 is assumed). Colour is ANSI and is all that it changes.

#include <string>

#include "summary/summary.h"

namespace bakeoff::report {

struct TerminalOptions {
  int width = 80;
  bool colour = false;
  int log_lines = 6;  // of a failed worker's output
};

std::string render_terminal(const Summary& summary, const TerminalOptions& options = {});

}  // namespace bakeoff::report
