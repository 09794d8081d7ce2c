#pragma once

// The control groups of this process: where they lie, and the memory and processor time that they count and
// allow. All processes in the group are counted together, this program and its workers too.
//
// clang-format off
// | number | v2             | v1                        | what                                            |
// |--------|----------------|---------------------------|-------------------------------------------------|
// | used   | memory.current | memory.usage_in_bytes     | memory in use, with files in the page cache     |
// | peak   | memory.peak    | memory.max_usage_in_bytes | highest use so far (v2: Linux 5.19)             |
// | limit  | memory.max     | memory.limit_in_bytes     | smallest limit of the group and its ancestors   |
// | quota  | cpu.max        | cpu.cfs_quota_us          | smallest quota of those, in processors          |
// clang-format on

#include <filesystem>
#include <string>
#include <vector>

#include "sample/reading.h"

namespace bakeoff::sample {

// The folders to read for `controller`, nearest first: v1's hierarchy of it if there is one, then v2's,
// also if both are mounted (hybrid). Each group is followed by its ancestors. In a container, whose paths
// are those of the host, this is the container's own top folder. Empty if /proc/self/cgroup cannot be read.
std::vector<std::filesystem::path> cgroup_folders(const std::filesystem::path& root,
                                                  const std::string& controller);

struct CgroupMemory {
  Reading used_bytes, peak_bytes;
  Reading limit_bytes;  // absent with the reason "no limit is set" if there is none
  bool operator==(const CgroupMemory&) const = default;
};
CgroupMemory sample_cgroup_memory(const std::filesystem::path& root = "/");

// Bytes that can still be allocated: limit minus use, plus what the page cache can give back; the smallest
// value of the group and its ancestors, never negative. Absent if no limit is set.
Reading cgroup_memory_left(const std::filesystem::path& root = "/");

// Number of processors that the quotas allow, the smallest of the group and its ancestors. Absent with the
// reason "no quota is set" if there is none.
Reading cgroup_cpu_quota(const std::filesystem::path& root = "/");

}  // namespace bakeoff::sample
