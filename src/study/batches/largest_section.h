#pragma once

// The largest batch that fits as a study: what to run, and the table of what it came to.

#include <vector>

#include "study/batches/largest_rows.h"
#include "study/study.h"

namespace bakeoff {

Study largest_batch_study();

table::Section largest_section(const std::vector<LargestRow>& rows);

}  // namespace bakeoff
