#include "sample/perf_counters.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/kernel_file.h"
#include "sample/clock_probe.h"

namespace bakeoff::sample {
namespace {

constexpr size_t kCounters = kPerfNames.size();
constexpr uint64_t kConfigs[kCounters] = {PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES,
                                          PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_BRANCH_MISSES};
constexpr size_t kMustCount = 2;  // of kPerfNames: no work goes without instructions and cycles
constexpr const char* kReadsZero = "the counter reads 0 while work is done";
constexpr int64_t kTestIterations = 200'000;  // at least as many instructions and cycles

int open_counter(size_t name, pid_t tid) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = kConfigs[name];
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  const auto fd = ::syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
  return fd >= 0 ? static_cast<int>(fd) : -errno;
}

bool read_counter(int handle, PerfCount& count) {
  uint64_t numbers[3] = {};
  if (::read(handle, numbers, sizeof numbers) != sizeof numbers) return false;
  count = {numbers[0], numbers[1], numbers[2]};
  return true;
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> all;
  std::error_code code;
  for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", pid), code)) {
    const std::string name = task.path().filename().string();
    pid_t tid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), tid).ec == std::errc()) all.push_back(tid);
  }
  return all;
}

std::string paranoid_level(const fs::path& root) {
  return kernel_line(root / "proc/sys/kernel/perf_event_paranoid");
}

// Why a counter of our own work cannot be trusted; empty: it counts.
std::string self_test(size_t name, const PerfSystem& system) {
  const int handle = system.open(name, 0);
  if (handle < 0) return perf_reason(-handle, system.root);
  dependent_chain(kTestIterations);
  PerfCount count;
  const bool told = system.read(handle, count);
  system.close(handle);
  if (!told) return "the counter cannot be read";
  // The chain misses neither caches nor branches: these need no proof of their own.
  return name < kMustCount && count.value == 0 ? kReadsZero : "";
}

}  // namespace

PerfSystem kernel_perf() {
  return {.open = open_counter,
          .read = read_counter,
          .close = [](int handle) { ::close(handle); },
          .threads = threads_of};
}

std::string perf_reason(int error, const fs::path& root) {
  if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP)
    return "the processor offers no such counter here, as in most virtual machines";
  if (error == EACCES || error == EPERM) {
    const std::string level = paranoid_level(root);
    if (level.empty()) return "not permitted, as in most containers: allow it perf_event_open (CAP_PERFMON)";
    return fmt::format(
        "not permitted: kernel.perf_event_paranoid is {}; `sysctl kernel.perf_event_paranoid=2` allows it, "
        "in a "
        "container CAP_PERFMON too",
        level);
  }
  if (error == ENOSYS) return "the kernel has no performance counters";
  if (error == EMFILE || error == ENFILE) return "too many open files: raise the limit (`ulimit -n`)";
  if (error == ESRCH) return "there is no such process";
  return std::strerror(error);
}

struct PerfCounters::Open {
  PerfSystem system;
  std::array<std::vector<int>, kCounters> handles = {};
  std::array<std::string, kCounters> absent = {};

  void attach(size_t name, const std::vector<pid_t>& threads) {
    int error = ESRCH;
    for (const pid_t tid : threads) {
      const int handle = system.open(name, tid);
      if (handle >= 0)
        handles[name].push_back(handle);
      else
        error = -handle;
    }
    if (handles[name].empty()) absent[name] = perf_reason(error, system.root);
  }
  ~Open() {
    for (const auto& of_name : handles) {
      for (const int handle : of_name) system.close(handle);
    }
  }
};

PerfCounters PerfCounters::attach(pid_t pid, const PerfSystem& system) {
  auto open = std::make_shared<Open>();
  open->system = system;
  const std::vector<pid_t> threads = system.threads(pid);
  for (size_t name = 0; name < kCounters; ++name) {
    // Misses are believed where the same processor counts its instructions.
    open->absent[name] =
        name >= kMustCount && !open->absent[0].empty() ? open->absent[0] : self_test(name, system);
    if (open->absent[name].empty()) open->attach(name, threads);
  }
  PerfCounters counters;
  counters.open_ = std::move(open);
  return counters;
}

PerfSnapshot PerfCounters::take() const {
  PerfSnapshot snapshot;
  for (size_t name = 0; name < kCounters; ++name) {
    snapshot.absent[name] = open_ ? open_->absent[name] : "not read";
    if (!open_) continue;
    for (const int handle : open_->handles[name]) {
      PerfCount count;
      if (!open_->system.read(handle, count)) snapshot.absent[name] = "the counter cannot be read any more";
      snapshot.counts[name].push_back(count);
    }
  }
  return snapshot;
}

namespace {

// Over all threads. A count for which the processor had time for a part only is scaled up to the whole.
Reading growth(const std::vector<PerfCount>& before, const std::vector<PerfCount>& after) {
  double sum = 0;
  bool counted = false, wanted = false;
  for (size_t i = 0; i < after.size(); ++i) {
    const PerfCount &b = before[i], &a = after[i];
    if (a.value < b.value || a.enabled_ns < b.enabled_ns || a.running_ns < b.running_ns)
      return Reading::absent("the counter went backwards");
    const auto enabled = static_cast<double>(a.enabled_ns - b.enabled_ns);
    const auto running = static_cast<double>(a.running_ns - b.running_ns);
    wanted = wanted || enabled > 0;
    if (running <= 0) continue;
    counted = true;
    sum += static_cast<double>(a.value - b.value) * (enabled / running);
  }
  if (counted) return sum;
  return Reading::absent(wanted ? "other users of the counters left it no time" : "nothing ran meanwhile");
}

}  // namespace

std::array<Reading, kCounters> perf_between(const PerfSnapshot& before, const PerfSnapshot& after) {
  std::array<Reading, kCounters> all;
  for (size_t name = 0; name < kCounters; ++name) {
    const std::string& why = before.absent[name].empty() ? after.absent[name] : before.absent[name];
    if (!why.empty())
      all[name] = Reading::absent(why);
    else if (before.counts[name].size() != after.counts[name].size())
      all[name] = Reading::absent("a counter came or went");
    else
      all[name] = growth(before.counts[name], after.counts[name]);
    if (name < kMustCount && all[name] && *all[name] == 0) all[name] = Reading::absent(kReadsZero);
  }
  return all;
}

}  // namespace bakeoff::sample
