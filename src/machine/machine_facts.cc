// Facts that may change a result, as lines of text that two reports can be compared by. Every file is read
// within a time limit, since a file of /sys may block for as long as a device is busy. Control characters are
// taken out and lines are cut, as some of these texts come from firmware. Lists of words (flags of a CPU,
// mount options) are sorted: their order means nothing, and a comparison then shows what was added or
// removed. What cannot be read is "not visible", which is a fact as well.

#include "machine/machine_facts.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/kernel_file.h"
#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "environments/runner_files.h"
#include "machine/doctor.h"
#include "sample/cgroup.h"

namespace bakeoff {
namespace {

constexpr const char* kHidden = "not visible";
constexpr size_t kLongest = 4096;

std::string printable_line(const fs::path& path) {
  std::string line = kernel_line(path).substr(0, kLongest);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  const size_t end = line.find_last_not_of(' ');
  return line.substr(0, end == std::string::npos ? 0 : end + 1);
}

// Of the first processor in /proc/cpuinfo.
std::string cpuinfo(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin, kLongest);
  }
  return "";
}

// The words in alphabetical order, so that a comparison shows what was added and removed.
std::string sorted_words(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  std::sort(all.begin(), all.end());
  return join(all, " ");
}

struct File {
  const char* topic;
  const char* path;
};
constexpr File kFiles[] = {
    {"frequency governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
    {"frequency driver", "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"},
    {"highest frequency, kHz", "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"},
    {"turbo (boost)", "sys/devices/system/cpu/cpufreq/boost"},
    {"turbo off (intel_pstate)", "sys/devices/system/cpu/intel_pstate/no_turbo"},
    {"transparent huge pages", "sys/kernel/mm/transparent_hugepage/enabled"},
    {"transparent huge pages, defragmentation", "sys/kernel/mm/transparent_hugepage/defrag"},
    {"simultaneous multithreading", "sys/devices/system/cpu/smt/active"},
    {"CPUs online", "sys/devices/system/cpu/online"},
    {"CPUs isolated", "sys/devices/system/cpu/isolated"},
    {"NUMA nodes", "sys/devices/system/node/online"},
    {"NUMA balancing", "proc/sys/kernel/numa_balancing"},
    {"address randomisation", "proc/sys/kernel/randomize_va_space"},
    {"clock source", "sys/devices/system/clocksource/clocksource0/current_clocksource"},
    {"swappiness", "proc/sys/vm/swappiness"},
    {"memory overcommit", "proc/sys/vm/overcommit_memory"},
    {"performance counters (paranoid level)", "proc/sys/kernel/perf_event_paranoid"},
    {"cgroup v2 CPU quota", "sys/fs/cgroup/cpu.max"},
    {"cgroup v2 CPU set", "sys/fs/cgroup/cpuset.cpus.effective"},
    {"cgroup v2 memory limit", "sys/fs/cgroup/memory.max"},
    {"cgroup v1 CPU quota", "sys/fs/cgroup/cpu/cpu.cfs_quota_us"},
    {"cgroup v1 CPU set", "sys/fs/cgroup/cpuset/cpuset.cpus"},
    {"cgroup v1 memory limit", "sys/fs/cgroup/memory/memory.limit_in_bytes"},
    {"kernel command line", "proc/cmdline"},
    {"GPU driver", "proc/driver/nvidia/version"},
};

void add_processor(const fs::path& root, Texts& facts) {
  const auto text = read_kernel_file_in_time(root / "proc/cpuinfo");
  const std::pair<const char*, const char*> keys[] = {{"processor", "model name"},
                                                      {"processor family", "cpu family"},
                                                      {"processor model", "model"},
                                                      {"stepping", "stepping"},
                                                      {"microcode", "microcode"}};
  for (const auto& [topic, key] : keys) {
    const std::string value = text ? cpuinfo(*text, key) : "";
    facts[topic] = value.empty() ? kHidden : value;
  }
  const std::string flags = text ? sorted_words(cpuinfo(*text, "flags")) : "";
  facts["processor flags"] = flags.empty() ? kHidden : flags;
  facts["hypervisor"] = flags.empty()                                                   ? kHidden
                        : (" " + flags + " ").find(" hypervisor ") != std::string::npos ? "yes"
                                                                                        : "no";
}

void add_mitigations(const fs::path& root, Texts& facts) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/cpu/vulnerabilities", error)) {
    std::string name = entry.path().filename().string();
    std::replace(name.begin(), name.end(), '_', ' ');
    if (const std::string line = printable_line(entry.path()); !line.empty())
      facts["mitigations: " + name] = line;
  }
}

void add_variables(const std::function<const char*(const char*)>& variable, Texts& facts) {
  std::vector<std::string> names = {"LD_PRELOAD",
                                    "GLIBC_TUNABLES",
                                    "MALLOC_ARENA_MAX",
                                    "MALLOC_MMAP_THRESHOLD_",
                                    "MALLOC_TRIM_THRESHOLD_",
                                    "MALLOC_TOP_PAD_",
                                    "OMP_NUM_THREADS",
                                    "MKL_NUM_THREADS",
                                    "KMP_AFFINITY",
                                    "ONEDNN_DEFAULT_FPMATH_MODE",
                                    "ONEDNN_MAX_CPU_ISA",
                                    "NVIDIA_TF32_OVERRIDE",
                                    "CUDA_VISIBLE_DEVICES"};
  for (const emit::Framework* framework : emit::frameworks()) {
    for (const emit::Variable& watched : framework->watched_variables) names.push_back(watched.name);
  }
  for (const std::string& name : names) {
    const char* value = variable(name.c_str());
    facts["variable " + name] = value != nullptr ? value : "not set";
  }
  const char* preload = variable("LD_PRELOAD");
  facts["allocator"] = preload != nullptr && *preload != '\0'
                           ? std::string("perhaps that of LD_PRELOAD: ") + preload
                           : std::string("glibc's malloc, version ") + gnu_get_libc_version();
}

}  // namespace

Texts read_facts(const fs::path& root, const std::function<const char*(const char*)>& variable) {
  Texts facts;
  add_processor(root, facts);
  add_mitigations(root, facts);
  for (const File& file : kFiles) {
    const std::string line = printable_line(root / file.path);
    facts[file.topic] = line.empty() ? kHidden : line;
  }
  const sample::Reading limit = sample::sample_cgroup_memory(root).limit_bytes;
  facts["cgroup memory limit, ours and above"] =
      limit ? fmt::format("{:.0f} MiB", *limit / (1 << 20)) : limit.reason();
  const sample::Reading quota = sample::cgroup_cpu_quota(root);
  facts["cgroup CPU quota, ours and above"] =
      quota ? fmt::format("{:.2f} processors", *quota) : quota.reason();
  const std::string release = printable_line(root / "proc/sys/kernel/osrelease");
  facts["kernel"] = release.empty() ? kHidden : release;
  const std::string build = printable_line(root / "proc/sys/kernel/version");
  facts["kernel build"] = build.empty() ? kHidden : build;
  facts["C library"] = std::string("glibc ") + gnu_get_libc_version();
  add_variables(variable, facts);
  return facts;
}

Texts read_framework_facts(const EnvironmentStore& store, const Progress& progress) {
  Texts facts;
  for (const Environment& environment : list_environments(store)) {
    if (!environment.extends.empty()) continue;  // the same framework
    if (!environment.ok()) {
      facts["environment " + environment.name] = environment.why_not();
      continue;
    }
    progress("importing " + environment.name);
    const auto runner = unpack_runner(store.home);
    const auto found = runner ? probe_environment(environment, *runner, 60) : runner.error();
    if (!found) {
      facts["environment " + environment.name] = found.error().message;
      continue;
    }
    for (const auto& [key, value] : *found) {
      if (key.starts_with("import_seconds") || key == "include" || key == "done") continue;
      facts[fmt::format("{}: {}", environment.name, key)] = value;
    }
  }
  for (const roofline::GemmLibrary& library : find_gemms("/", store))
    facts["BLAS: " + library.name] = library.path.filename().string();
  return facts;
}

}  // namespace bakeoff
