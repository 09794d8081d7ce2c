#pragma once

// Histories as one self-contained HTML file: a small picture of each series, by workload, and one large picture to
// look at closely. Without a server and without network access.

#include <string>
#include <vector>

#include "history/history.h"

namespace bakeoff::report {

// `where`: the index that they are of; `made`: UTC.
std::string render_history_page(const std::vector<History>& histories, const std::string& where,
                                const std::string& made);

}  // namespace bakeoff::report
