#include "lab/host.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/kernel_file.h"
#include "sample/cgroup.h"

namespace bakeoff::lab {
namespace {

// The value of "key<separator> value" in a text of such lines; empty if there is none.
std::string value_of(std::string_view text, std::string_view key, char separator) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(key)) continue;
    const size_t at = line.find(separator);
    if (at == std::string_view::npos) continue;
    line.remove_prefix(at + 1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t' || line.front() == '"'))
      line.remove_prefix(1);
    while (!line.empty() && (line.back() == '"' || line.back() == ' ')) line.remove_suffix(1);
    return std::string(line);
  }
  return "";
}

int64_t meminfo_bytes(std::string_view key, const fs::path& root = "/") {
  const auto text = read_kernel_file_in_time(root / "proc/meminfo");
  return text ? std::atoll(value_of(*text, key, ':').c_str()) * 1024 : 0;
}

}  // namespace

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

int64_t available_memory_bytes(const fs::path& root) {
  const int64_t left = meminfo_bytes("MemAvailable", root);
  if (left <= 0) return 0;
  const sample::Reading group = sample::cgroup_memory_left(root);
  return group ? std::max<int64_t>(1, std::min(left, static_cast<int64_t>(*group))) : left;
}

Host read_host() {
  Host host;
  utsname names{};
  uname(&names);
  host.name = names.nodename;
  host.kernel = std::string(names.sysname) + " " + names.release;
  if (const auto cpu = read_kernel_file_in_time("/proc/cpuinfo")) {
    host.cpu = value_of(*cpu, "model name", ':');
    const std::string flags = " " + value_of(*cpu, "flags", ':') + " ";
    std::string vector;
    for (const std::string_view flag :
         {"avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_fp16"}) {
      if (flags.find(" " + std::string(flag) + " ") != std::string::npos)
        vector += (vector.empty() ? "" : " ") + std::string(flag);
    }
    host.more["vector units"] = vector;
    host.more["hypervisor"] = flags.find(" hypervisor ") != std::string::npos ? "yes" : "no";
  }
  if (const auto os = read_file("/etc/os-release")) host.os = value_of(*os, "PRETTY_NAME", '=');
  host.cpus = static_cast<int>(allowed_cpus().size());
  host.memory_bytes = meminfo_bytes("MemTotal");
  const std::pair<const char*, const char*> files[] = {
      {"transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled"},
      {"frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
      {"address randomisation", "/proc/sys/kernel/randomize_va_space"},
      {"load average at start", "/proc/loadavg"}};
  for (const auto& [what, path] : files) {
    if (const std::string text = kernel_line(path); !text.empty()) host.more[what] = text;
  }
  if (const auto quota = sample::cgroup_cpu_quota())
    host.more["CPU quota"] = fmt::format("{:.2f} processors", *quota);
  return host;
}

}  // namespace bakeoff::lab
