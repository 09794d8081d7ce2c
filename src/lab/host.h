#pragma once

// What shapes a number on this machine.

#include <filesystem>
#include <vector>

#include "lab/trial.h"

namespace bakeoff::lab {

Host read_host();
// CPUs that this process may run on, ascending.
std::vector<int> allowed_cpus();
// MemAvailable of proc/meminfo below `root`, or what the limits of our cgroups leave where that is less: at
// least 1. 0 where it cannot be read.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace bakeoff::lab
