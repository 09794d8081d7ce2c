#pragma once

// What nodes need has to lie in a folder that all of them see.

#include <filesystem>

#include "base/result.h"
#include "fleet/records.h"
#include "plan/plan.h"

namespace bakeoff::fleet {

// Error: the program, the bakeoff home, or the folder of runs lies outside the folder `shared`.
Status check_places(const std::filesystem::path& shared, const Settings& settings,
                    const std::filesystem::path& runs);
// Or the run directory, an interpreter, or a file that the recipe names; the error names the recipe's key where there
// is one.
Status check_shared(const std::filesystem::path& shared, const Settings& settings, const Plan& plan);

}  // namespace bakeoff::fleet
