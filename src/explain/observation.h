#pragma once

// The observing run of a script: what is seen of it as it is, before anything is compared.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "explain/subject.h"

namespace bakeoff::explain {

// Runs the scripts for some hundred steps or seconds, and fills in what was seen of them. Two start side by side and make
// their first steps, then each is watched by itself while the other one is stopped. `folder`: for their logs.
// `budget_s`: seconds of the whole answer; steps are watched for a fifteenth of it, but 2 to 5 s.
Status observe(std::span<Subject> subjects, const std::filesystem::path& folder, double budget_s,
               const Progress& progress);

// Observes both scripts again from start to end, so that whole runs are compared, if their steps are unlike (a step
// is a call of a model in only one of them, or of another model) or if most of the time comes after the last step,
// where nothing was watched. Scripts that take longer than a minute are left as they are.
Status observe_whole(std::vector<Subject>& subjects, const std::filesystem::path& folder);

// Decides what is compared, by what was observed: whole runs if a script makes few steps, steps if the samples of
// one script are not known, else samples. The slower of two scripts comes first, and each learns the facts of the
// other. `notes` gets the reasons.
void prepare(std::vector<Subject>& subjects, std::vector<std::string>& notes);

}  // namespace bakeoff::explain
