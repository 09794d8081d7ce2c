#include "machine/host_checks.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/kernel_file.h"
#include "emit/all/frameworks.h"
#include "machine/host.h"
#include "sample/cgroup.h"
#include "sample/machine_limits.h"

namespace bakeoff {
namespace {

// The word in brackets: "always [madvise] never".
std::string chosen(const std::string& line) {
  const size_t open = line.find('[');
  const size_t close = line.find(']', open);
  return open == std::string::npos || close == std::string::npos ? ""
                                                                 : line.substr(open + 1, close - open - 1);
}

Finding check_governor(const fs::path& root) {
  const std::string topic = "frequency governor";
  std::map<std::string, int> counts;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/cpu", code)) {
    const std::string governor = kernel_line(entry.path() / "cpufreq/scaling_governor");
    if (!governor.empty()) ++counts[governor];
  }
  if (counts.empty())
    return {Level::kNote, topic, "not visible (a virtual machine?)",
            "nothing can be done from inside this machine"};
  if (counts.size() == 1 && counts.contains("performance"))
    return {Level::kOk, topic, "performance on all CPUs"};
  std::string text;
  for (const auto& [governor, n] : counts)
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", governor, n);
  return {Level::kWarning, topic, text + " CPUs: frequencies change during a race",
          "cpupower frequency-set --governor performance"};
}

Finding check_boost(const fs::path& root) {
  const std::string topic = "turbo";
  const std::string boost = kernel_line(root / "sys/devices/system/cpu/cpufreq/boost");
  const std::string no_turbo = kernel_line(root / "sys/devices/system/cpu/intel_pstate/no_turbo");
  if (boost == "0" || no_turbo == "1") return {Level::kOk, topic, "off: steady frequencies"};
  if (boost.empty() && no_turbo.empty())
    return {Level::kNote, topic, "not visible", "nothing can be done from inside this machine"};
  return {Level::kNote, topic, "on: frequency depends on temperature and on how many CPUs are busy",
          "for the steadiest numbers: echo 0 > /sys/devices/system/cpu/cpufreq/boost, or 1 > "
          ".../intel_pstate/no_turbo"};
}

Finding check_huge_pages(const fs::path& root) {
  const std::string topic = "transparent huge pages";
  const std::string mode = chosen(kernel_line(root / "sys/kernel/mm/transparent_hugepage/enabled"));
  if (mode.empty())
    return {Level::kNote, topic, "not visible", "nothing can be done from inside this machine"};
  if (mode != "never") return {Level::kOk, topic, mode};
  return {Level::kNote, topic, "never: large tensors take more page faults and TLB misses, the same for all",
          "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding check_load(const fs::path& root, int cpus) {
  const std::string topic = "load";
  const auto line = read_kernel_file_in_time(root / "proc/loadavg");
  if (!line)
    return {Level::kNote, topic, "not visible: " + line.error().message, "make sure that nothing else runs"};
  const double load = std::strtod(line->c_str(), nullptr);
  const std::string text = fmt::format("{:.2f} over the last minute on {} CPUs", load, cpus);
  if (load < 0.25 * cpus) return {Level::kOk, topic, text};
  return {Level::kWarning, topic, text + ": something else is running", "end it, or wait until it is done"};
}

Finding check_cpus(const fs::path& root, int cpus) {
  const std::string topic = "CPUs";
  const sample::Reading quota = sample::cgroup_cpu_quota(root);
  if (!quota || *quota >= cpus)
    return {Level::kOk, topic, fmt::format("{} to run on, no quota below that", cpus)};
  return {
      Level::kWarning, topic,
      fmt::format("{} to run on, but a quota of {:.1f}: threads will be stopped during a step", cpus, *quota),
      "raise the container's CPU quota, or pin it to whole CPUs (cpuset)"};
}

Finding check_memory(const fs::path& root) {
  const std::string topic = "memory";
  const int64_t bytes = sample::available_memory_bytes(root);
  if (bytes == 0) return {Level::kNote, topic, "not visible", "make sure that 4 GiB are free"};
  const double gib = static_cast<double>(bytes) / (1 << 30);
  const std::string found = fmt::format("{:.1f} GiB available", gib);
  if (gib >= 4) return {Level::kOk, topic, found};
  return {Level::kWarning, topic, found + ": several frameworks are alive at once in a race",
          "free some, or set 'live = 2' under [race] in the recipe"};
}

}  // namespace

std::string name(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kNote:
      return "note";
    case Level::kWarning:
      return "warning";
    case Level::kProblem:
      return "problem";
  }
  return "?";
}

std::vector<Finding> check_host(const fs::path& root, int cpus) {
  return {check_cpus(root, cpus), check_load(root, cpus), check_memory(root),
          check_governor(root),   check_boost(root),      check_huge_pages(root)};
}

std::vector<Finding> check_variables(const std::function<const char*(const char*)>& variable) {
  std::vector<emit::Variable> watched = {
      {"LD_PRELOAD", "it loads another library before the system's, perhaps another allocator"},
      {"GLIBC_TUNABLES", "glibc's allocator is tuned"},
      {"MALLOC_ARENA_MAX", "glibc's allocator is tuned"},
      {"MALLOC_MMAP_THRESHOLD_", "glibc's allocator is tuned"},
      {"MALLOC_TRIM_THRESHOLD_", "glibc's allocator is tuned"},
      {"MALLOC_TOP_PAD_", "glibc's allocator is tuned"},
      {"OMP_NUM_THREADS", "it sets the number of threads"},
      {"MKL_NUM_THREADS", "it sets the number of threads"},
      {"KMP_AFFINITY", "threads are pinned"},
      {"ONEDNN_DEFAULT_FPMATH_MODE", "oneDNN may compute in lower precision"},
      {"NVIDIA_TF32_OVERRIDE", "TF32 is forced on or off"},
      {"PYTHONPATH", "other Python packages take precedence over an environment's own"},
  };
  for (const emit::Framework* framework : emit::frameworks()) {
    watched.insert(watched.end(), framework->watched_variables.begin(), framework->watched_variables.end());
    for (const emit::Setting& setting : framework->settings) {
      if (setting.variable.empty()) continue;
      watched.push_back({setting.variable, fmt::format("it sets {}'s {}; workers set their own",
                                                       framework->title, setting.name)});
    }
  }
  std::vector<Finding> findings;
  std::set<std::string> seen;
  for (const auto& [name, meaning] : watched) {
    const char* value = variable(name.c_str());
    if (!value || !*value || !seen.insert(name).second) continue;
    findings.push_back({Level::kNote, "variable", fmt::format("{}={}: {}", name, value, meaning),
                        fmt::format("unset {} unless that is meant", name)});
  }
  if (findings.empty())
    findings.push_back({Level::kOk, "variables", "none that changes allocator, threads or precision"});
  return findings;
}

}  // namespace bakeoff
