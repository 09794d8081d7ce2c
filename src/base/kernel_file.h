#pragma once

// Files of the kernel (/proc, /sys, control groups), read whole. What replaces such a file must not
// block the program: a pipe in a fake root, or in a container a file of lxcfs, whose server may be gone.

#include <cstdint>
#include <functional>
#include <string>

#include "base/files.h"

namespace bakeoff {

// Reads a regular file. Neither opening nor reading waits for a writer: a pipe or a device is an error.
// Errors have the file's name and the system's reason: "energy_uj: Permission denied".
Result<std::string> read_kernel_file(const fs::path& path);

// The same for a file that may never answer: one that lxcfs may provide (/proc/stat, meminfo, cpuinfo,
// loadavg, uptime; sysfs), or one that waits for another process's memory map (maps, environ,
// smaps_rollup). A separate thread reads it, which costs some 50 us, and is abandoned after `patience_ns`.
// Until that thread returns, calls for the same file fail at once. Tests replace `read`.
Result<std::string> read_kernel_file_in_time(
    const fs::path& path, int64_t patience_ns = 2'000'000'000,
    std::function<Result<std::string>(const fs::path&)> read = read_kernel_file);

std::string first_line(const std::string& text);
// The first line of a file, read within the time limit; empty if that fails.
std::string kernel_line(const fs::path& path);

}  // namespace bakeoff
