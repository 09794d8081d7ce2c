#pragma once

// The page as data: what templates/page.html names.

#include "report/view.h"
#include "summary/summary.h"

namespace bakeoff::report {

View page_view(const Summary& summary, bool sources);

}  // namespace bakeoff::report
