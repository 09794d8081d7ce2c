#pragma once

#include <cstdint>
#include <filesystem>

namespace bakeoff::proc {

// The number of OOM kills that the kernel has counted for this process's cgroup (v1, v2 or both mounted; in a
// container, whose paths are those of the host, its top folder), else for the whole machine; 0 if neither is known.
int64_t oom_kills(const std::filesystem::path& root = "/");

}  // namespace bakeoff::proc
