#pragma once

// The observing run of a script: what is seen of it as it is, before anything is compared.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "explain/subject.h"

namespace bakeoff::explain {

// Runs the script for some hundred steps or seconds, and fills in what was seen of it. `folder`: for its log.
// `budget_s`: of all that the caller does; its steps are watched for a fifteenth of that, 2 to 8 s.
Status observe(Subject& subject, const std::filesystem::path& folder, double budget_s);

// Where a step is a call of a model in one of two scripts alone, or of different models, or where most of the time comes after
// the last step and nobody looked, both scripts are observed from start to end, if they end within a minute, and whole runs are
// compared.
Status observe_whole(std::vector<Subject>& subjects, const std::filesystem::path& folder);

// What scripts need for a comparison: whole runs of scripts that make few steps; of two, the slower one comes
// first, by what was observed, steps are compared where the samples of one are not known, and each knows the
// facts of the other. `notes` tells of it.
void prepare(std::vector<Subject>& subjects, std::vector<std::string>& notes);

}  // namespace bakeoff::explain
