#pragma once

// The caches of a CPU as the kernel describes them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace bakeoff::roofline {

struct Cache {
  std::string name = {};         // "L1", "L2", "L3": data or unified
  int64_t bytes = 0;             // of one of them
  std::vector<int> shared = {};  // CPUs that share it; empty: not known
  bool operator==(const Cache&) const = default;
};

// Of `cpu`, ascending, from ROOT/sys/devices/system/cpu; where that says nothing, from sysconf (for the root
// "/" only). Sizes that make no sense are left out.
std::vector<Cache> read_caches(const std::filesystem::path& root, int cpu);

// "0-3,8" -> 0 1 2 3 8; empty where it is not such a list.
std::vector<int> parse_cpu_list(const std::string& text);

// "512K", "32M" -> bytes; 0 where it is not a size.
int64_t parse_size(const std::string& text);

}  // namespace bakeoff::roofline
