#pragma once

// What this machine lets us use.

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

namespace bakeoff::sample {

// CPUs that this process may run on, ascending.
std::vector<int> allowed_cpus();
// The same by a system call of a test's own; throws std::system_error where it fails.
std::vector<int> allowed_cpus(const std::function<int(size_t, cpu_set_t*)>& get_affinity);
// MemAvailable of proc/meminfo below `root`, or what the limits of our cgroups leave where that is less: at
// least 1. 0 where it cannot be read.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

// What proc/meminfo below `root` says of "MemTotal" or the like, in bytes; 0 where it cannot be read.
int64_t meminfo_bytes(std::string_view key, const std::filesystem::path& root = "/");

}  // namespace bakeoff::sample
