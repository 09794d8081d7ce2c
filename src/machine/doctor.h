#pragma once

// `bakeoff doctor`: everything that a race needs and everything that could distort it, each finding with a
// remedy.
//
//   for (const Finding& f : doctor(store, {}, progress)) ...     // takes seconds: imports every framework

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "environments/environments.h"
#include "machine/host_checks.h"

namespace bakeoff {

struct DoctorOptions {
  std::filesystem::path root = "/";  // folder that contains /proc and /sys
  bool import = true;                // import every framework, each in its own process
  int64_t import_seconds = 120;      // time limit of such an import
};

// Findings in this order: Python, environments and their imports, compilers that frameworks call, data, disk,
// then check_host and check_variables.
std::vector<Finding> doctor(const EnvironmentStore& store, const DoctorOptions& options,
                            const Progress& progress);

// Whether some finding is a problem: something will not work.
bool has_problem(const std::vector<Finding>& findings);

// Imports the frameworks of an environment in a child process and reads versions, build flags, devices and
// threads: values by key ("version.torch", "import_seconds.torch", "build", "devices", "threads", "include").
// Error, with the child's last lines: an import fails or exceeds the time limit. `runner`: the folder that
// unpack_runner() gives.
Result<Texts> probe_environment(const Environment& environment, const std::filesystem::path& runner,
                                int64_t seconds);

}  // namespace bakeoff
