#pragma once

// `bakeoff doctor`: everything that a race needs or that would distort it, each finding with its remedy.
//
//   for (const Finding& f : doctor(shop, {}, progress)) ...     // seconds: every framework is imported

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "environments/environments.h"
#include "machine/host_checks.h"

namespace bakeoff {

struct DoctorOptions {
  std::filesystem::path root = "/";  // of /proc and /sys
  bool import = true;                // import every framework in a process of its own
  int64_t import_seconds = 120;      // deadline of that
};

// In the order: Python, environments and what they import, compilers that frameworks call, data, disk, then
// check_host and check_variables.
std::vector<Finding> doctor(const Workshop& shop, const DoctorOptions& options, const Progress& progress);

// Whether something will not work.
bool has_problem(const std::vector<Finding>& findings);

// Imports the frameworks of an environment in a child and asks them for versions, build flags, devices and
// threads: values by key ("version.torch", "import_seconds.torch", "build", "devices", "threads", "include").
// Fails with the last lines of the child where an import fails, or hangs beyond the deadline.
// `runner`: the folder that unpack_runner() gives.
Result<Texts> probe_environment(const Environment& environment, const std::filesystem::path& runner,
                                int64_t seconds);

}  // namespace bakeoff
