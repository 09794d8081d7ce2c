#pragma once

// The observing run of a script: what is seen of it as it is, before anything is compared.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "explain/subject.h"

namespace bakeoff::explain {

// Runs the script for some hundred steps or seconds, and fills in what was seen of it. `folder`: for its log.
Status observe(Subject& subject, const std::filesystem::path& folder);

// What two scripts need for a comparison: the slower one comes first, by what was observed; steps are compared
// where the samples of one are not known; each knows the batch of the other. `notes` tells of both.
void prepare_pair(std::vector<Subject>& subjects, std::vector<std::string>& notes);

}  // namespace bakeoff::explain
