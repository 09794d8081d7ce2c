#pragma once

// The caches of a CPU as the kernel describes them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace bakeoff::roofline {

struct Cache {
  std::string name = {};         // "L1", "L2", "L3": data or unified
  int64_t bytes = 0;             // size of one such cache
  std::vector<int> shared = {};  // CPUs that share it; empty: unknown
  bool operator==(const Cache&) const = default;
};

// The caches of `cpu`, ascending, from `root`/sys/devices/system/cpu, else from sysconf (only if root is
// "/"). Sizes that make no sense are left out.
std::vector<Cache> read_caches(const std::filesystem::path& root, int cpu);

// "0-3,8" -> 0 1 2 3 8; empty if the text is no such list.
std::vector<int> parse_cpu_list(const std::string& text);

// "512K", "32M" -> bytes; 0 if the text is no size.
int64_t parse_size(const std::string& text);

}  // namespace bakeoff::roofline
