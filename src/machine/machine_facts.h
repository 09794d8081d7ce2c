#pragma once

// Facts about this machine that can change a result, for the machine report (records/machine_report.h).

#include <filesystem>
#include <functional>
#include <vector>

#include "base/progress.h"
#include "base/texts.h"
#include "environments/environments.h"
#include "roofline/measure.h"

namespace bakeoff {

// Facts from `root`/proc, `root`/sys, `root`/etc and the environment variables that `variable` returns. A
// fact that cannot be read has the value "not visible".
Texts read_facts(const std::filesystem::path& root, const std::function<const char*(const char*)>& variable);
// Versions and build flags of the packages in each ready environment ("build of torch"), and its BLAS
// libraries by name. Takes seconds.
Texts read_framework_facts(const EnvironmentStore& store, const Progress& progress);

// Libraries with a matrix product: the system's BLAS and oneDNN, and those in the environments.
std::vector<roofline::GemmLibrary> find_gemms(const std::filesystem::path& root,
                                              const EnvironmentStore& store);

}  // namespace bakeoff
