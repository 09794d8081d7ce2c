#pragma once

// The search for the best batch as a study: what to run, and the table and the picture of what it came to.

#include <cstdint>
#include <vector>

#include "study/batches/batch_rows.h"
#include "study/study.h"

namespace bakeoff {

Study batch_search_study();

// `margin`: within which a batch is enough; `batch`: the recipe's, at which the contenders were proven equal.
table::Section batch_section(const std::vector<SearchRow>& rows, double margin, int64_t batch);

}  // namespace bakeoff
