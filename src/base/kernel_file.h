#pragma once

// Files of the kernel's (/proc, /sys, control groups), whole. What stands in such a file's place must not
// hold the program up: a pipe in a fake root, or in a container a file of lxcfs, whose server may be gone.

#include <cstdint>
#include <functional>
#include <string>

#include "base/files.h"

namespace bakeoff {

// A regular file. Neither opening nor reading waits for a writer: a pipe or a device is refused.
// "energy_uj: Permission denied" otherwise: the file's name with the system's reason.
Result<std::string> read_kernel_file(const fs::path& path);

// The same for a file that may never answer: one that lxcfs can stand for (/proc/stat, meminfo, cpuinfo,
// loadavg, uptime; sysfs), or one that waits for another process's memory map (maps, environ, smaps_rollup).
// A thread of its own reads it, some 50 us, and is left behind after `patience_ns`. As long as that one has
// not come back, a call for the same file fails at once. `read` stands for read_kernel_file in tests.
Result<std::string> read_kernel_file_in_time(
    const fs::path& path, int64_t patience_ns = 2'000'000'000,
    std::function<Result<std::string>(const fs::path&)> read = read_kernel_file);

std::string first_line(const std::string& text);
// The first line of a file, read in time; empty where it cannot be.
std::string kernel_line(const fs::path& path);

}  // namespace bakeoff
