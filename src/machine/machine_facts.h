#pragma once

// What shapes a number on this machine, for the machine report (records/machine_report.h).

#include <filesystem>
#include <functional>
#include <vector>

#include "base/progress.h"
#include "base/texts.h"
#include "environments/environments.h"
#include "roofline/measure.h"

namespace bakeoff {

// What shapes a number, from ROOT/proc, ROOT/sys, ROOT/etc and the environment variables that `variable`
// gives. What cannot be read is absent with its reason: "not visible".
Texts read_facts(const std::filesystem::path& root, const std::function<const char*(const char*)>& variable);
// Version and build flags of what each environment that is ready imports, "build of torch" among them:
// seconds. Its BLAS libraries by name.
Texts read_framework_facts(const Workshop& shop, const Progress& progress);

// Libraries with a matrix product: the system's BLAS and oneDNN, and those inside the environments.
std::vector<roofline::GemmLibrary> find_gemms(const std::filesystem::path& root, const Workshop& shop);

}  // namespace bakeoff
