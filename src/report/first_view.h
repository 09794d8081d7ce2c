#pragma once

// The first screen of a page as data: what templates/page.html names above its folded sections.

#include "report/view.h"
#include "summary/summary.h"

namespace bakeoff::report {

// `sources`: the page may hold the fastest script, to be copied.
void add_first_screen(const Summary& summary, bool sources, View& page);

}  // namespace bakeoff::report
