#pragma once

// Training to a target as a study: what to run, and the table of what it came to.

#include <string>
#include <vector>

#include "study/study.h"
#include "study/training/target_rows.h"

namespace bakeoff {

Study target_study();

// `text`: "an accuracy of 97% on 2,000 rows that are not trained on". `alpha`: of every statement.
table::Section target_section(const std::vector<TargetRow>& rows, const std::string& text, double alpha);

}  // namespace bakeoff
