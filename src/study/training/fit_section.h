#pragma once

// Whole trainings as a study: what to run, and the table of what they came to.

#include <string>
#include <utility>
#include <vector>

#include "study/study.h"
#include "study/training/fit_rows.h"

namespace bakeoff {

Study fit_study();

table::Section fit_section(const std::vector<FitRow>& rows, const FitFacts& facts);

// Median seconds of a whole training by contender, over trainings that ended well.
Result<std::vector<std::pair<std::string, double>>> fit_seconds(const RunDirectory& directory,
                                                                const StudyContext& context);

}  // namespace bakeoff
