#include "sample/machine_limits.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "base/kernel_file.h"
#include "sample/cgroup.h"

namespace bakeoff::sample {

std::vector<int> allowed_cpus(const std::function<int(size_t, cpu_set_t*)>& get_affinity) {
  constexpr int kMost = 1 << 20;
  for (int count = CPU_SETSIZE; count <= kMost; count *= 2) {  // the kernel refuses a set that is too small
    const size_t size = CPU_ALLOC_SIZE(count);
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(count),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    CPU_ZERO_S(size, set.get());
    if (get_affinity(size, set.get()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < count; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), size, set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  throw std::system_error(errno, std::generic_category(), "the CPUs of this process cannot be read");
}

std::vector<int> allowed_cpus() {
  return allowed_cpus([](size_t size, cpu_set_t* set) { return sched_getaffinity(0, size, set); });
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
