#pragma once

// The CPUs and the memory that this process may use.

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
// The same through `get_affinity`, for tests; throws std::system_error if that fails.
std::vector<int> allowed_cpus(const std::function<int(size_t, cpu_set_t*)>& get_affinity);
// MemAvailable of `root`/proc/meminfo, or what the limits of our cgroups leave if that is less; at least 1.
// 0 if it cannot be read.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");
// The value of `key` ("MemTotal", ...) in `root`/proc/meminfo, in bytes; 0 if it cannot be read.
int64_t meminfo_bytes(std::string_view key, const std::filesystem::path& root = "/");

}  // namespace bakeoff::sample
