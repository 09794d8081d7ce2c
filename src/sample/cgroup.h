#pragma once

// The control groups that this process is in: where they lie, and the memory and processor time they count
// and allow. All that run in the group are counted together, this program and its workers too.
//
// clang-format off
// | number | v2             | v1                        | what                                               |
// |--------|----------------|---------------------------|----------------------------------------------------|
// | used   | memory.current | memory.usage_in_bytes     | now, files in the page cache included              |
// | peak   | memory.peak    | memory.max_usage_in_bytes | the most since the group was made (v2: Linux 5.19) |
// | limit  | memory.max     | memory.limit_in_bytes     | the least of the group's and its ancestors'        |
// | quota  | cpu.max        | cpu.cfs_quota_us          | the same, in processors                            |
// clang-format on

#include <filesystem>
#include <string>
#include <vector>

#include "sample/reading.h"

namespace bakeoff::sample {

// The folders to look at for `controller`, nearest first: v1's hierarchy of it where there is one, then v2's,
// also where both are mounted (hybrid). Behind each group its ancestors; within a container, whose paths are
// those of the host, this is the container's own top. Empty where /proc/self/cgroup cannot be read.
std::vector<std::filesystem::path> cgroup_folders(const std::filesystem::path& root,
                                                  const std::string& controller);

struct CgroupMemory {
  Reading used_bytes, peak_bytes;
  Reading limit_bytes;  // absent with "no limit is set" where none is
  bool operator==(const CgroupMemory&) const = default;
};
CgroupMemory sample_cgroup_memory(const std::filesystem::path& root = "/");

// Bytes that may still be had: limit less used, and what the page cache would give back; the least over the
// group and its ancestors, never negative. Absent where no limit is set.
Reading cgroup_memory_left(const std::filesystem::path& root = "/");

// How many processors' time the quotas allow, the least of the group's and its ancestors'. Absent with "no
// quota is set" where none is.
Reading cgroup_cpu_quota(const std::filesystem::path& root = "/");

}  // namespace bakeoff::sample
