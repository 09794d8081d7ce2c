#include "machine/host.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/kernel_file.h"
#include "sample/cgroup.h"
#include "sample/machine_limits.h"

namespace bakeoff {
namespace {

// The value of "key<separator> value" in a text of such lines; empty if absent.
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

}  // namespace

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
  host.cpus = static_cast<int>(sample::allowed_cpus().size());
  host.memory_bytes = sample::meminfo_bytes("MemTotal");
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

}  // namespace bakeoff
