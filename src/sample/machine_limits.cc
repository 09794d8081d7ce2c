#include "sample/machine_limits.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/kernel_file.h"
#include "sample/cgroup.h"

namespace bakeoff::sample {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

int64_t meminfo_bytes(std::string_view key, const std::filesystem::path& root) {
  const auto text = read_kernel_file_in_time(root / "proc/meminfo");
  if (!text) return 0;
  const size_t at = text->find(std::string(key) + ":");
  return at == std::string::npos ? 0 : std::atoll(text->c_str() + at + key.size() + 1) * 1024;
}

int64_t available_memory_bytes(const std::filesystem::path& root) {
  const int64_t left = meminfo_bytes("MemAvailable", root);
  if (left <= 0) return 0;
  const Reading group = cgroup_memory_left(root);
  return group ? std::max<int64_t>(1, std::min(left, static_cast<int64_t>(*group))) : left;
}

}  // namespace bakeoff::sample
