#include "sample/process_sampler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>

#include "base/kernel_file.h"
#include "sample/counters.h"

namespace bakeoff::sample {
namespace {

// A number of every thread, added up. One that ended meanwhile is left out; a number that makes no sense
// leaves no sum.
class Sum {
 public:
  // `text`: of the thread's `file`.
  template <typename Parse, typename Take>
  void add(const Result<std::string>& text, const char* file, Parse parse, Take take) {
    if (!text) {
      if (!sum_) why_ = fmt::format("there is no readable {}", file);
      return;
    }
    const auto value = parse(*text);
    if (value)
      sum_ = sum_.value_or(0) + take(*value);
    else if (garbage_.empty())
      garbage_ = value.error().message;
  }
  // `gone`: where there was no thread at all.
  Reading reading(const std::string& gone) const {
    if (!garbage_.empty()) return Reading::absent(garbage_);
    return sum_ ? Reading(*sum_) : Reading::absent(why_.empty() ? gone : why_);
  }

 private:
  std::optional<double> sum_ = {};
  std::string why_ = {}, garbage_ = {};
};

}  // namespace

ProcessSnapshot sample_process(pid_t pid, const fs::path& root) {
  ProcessSnapshot snapshot;
  const std::string gone = fmt::format("there is no process {}", pid);
  const fs::path folder = root / "proc" / std::to_string(pid);
  const auto stat = read_kernel_file(folder / "stat");
  const Result<PageFaults> faults =
      stat ? parse_page_faults(*stat) : Result<PageFaults>(Error{.message = gone});
  snapshot.minor_faults =
      faults ? Reading(static_cast<double>(faults->minor)) : Reading::absent(faults.error().message);
  snapshot.major_faults =
      faults ? Reading(static_cast<double>(faults->major)) : Reading::absent(faults.error().message);
  Sum involuntary, voluntary, wait;
  const auto count = [](int64_t switches) { return static_cast<double>(switches); };
  std::error_code code;
  for (const auto& task : fs::directory_iterator(folder / "task", code)) {
    const auto status = read_kernel_file(task.path() / "status");
    involuntary.add(status, "status", parse_involuntary_switches, count);
    voluntary.add(status, "status", parse_voluntary_switches, count);
    wait.add(read_kernel_file(task.path() / "schedstat"), "schedstat", parse_schedstat,
             [](const SchedStat& s) { return static_cast<double>(s.wait_ns) / 1e9; });
  }
  snapshot.involuntary_switches = involuntary.reading(gone);
  snapshot.voluntary_switches = voluntary.reading(gone);
  snapshot.wait_s = wait.reading(gone);
  return snapshot;
}

Result<int64_t> cpu_time_ns(pid_t pid) {
  clockid_t clock = 0;
  timespec time{};
  if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return Error{.message = fmt::format("process {} has no processor time that can be read", pid)};
  }
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::map<pid_t, ProcessCpu> cpu_by_process(const fs::path& root) {
  std::error_code code;
  std::map<pid_t, ProcessCpu> all;
  for (const auto& entry : fs::directory_iterator(root / "proc", code)) {
    const std::string name = entry.path().filename().string();
    const bool number = std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!number) continue;
    const auto stat = read_kernel_file(entry.path() / "stat");
    const auto spent = stat ? parse_cpu_ticks(*stat) : Result<CpuTicks>(Error{});
    if (!spent) continue;
    // After the name, which may hold anything, come the state and the parent.
    const char* after_name = stat->c_str() + stat->rfind(')') + 1;
    const char* state = after_name + std::strspn(after_name, " ");
    const auto parent = static_cast<pid_t>(*state == '\0' ? 0 : std::atoi(state + 1));
    all[static_cast<pid_t>(std::atoi(name.c_str()))] = {spent->own, spent->of_ended_children, parent};
  }
  return all;
}

double cpu_of_others_s(const std::map<pid_t, ProcessCpu>& before, const std::map<pid_t, ProcessCpu>& after,
                       const std::vector<pid_t>& ours) {
  const auto earlier = [&](pid_t pid) {
    const auto found = before.find(pid);
    return found == before.end() ? ProcessCpu{} : found->second;
  };
  // What ended processes had used at first is part of the gain of the processes that waited for them.
  std::map<pid_t, int64_t> inherited;
  for (const auto& [pid, cpu] : before) {
    if (after.contains(pid)) continue;
    pid_t heir = cpu.parent;
    while (heir > 0 && !after.contains(heir)) heir = earlier(heir).parent;
    inherited[heir] += cpu.own_ticks + cpu.of_ended_ticks;
  }
  int64_t ticks = 0;
  for (const auto& [pid, cpu] : after) {
    if (std::ranges::find(ours, pid) != ours.end()) continue;
    const ProcessCpu first = earlier(pid);
    ticks += std::max<int64_t>(0, cpu.own_ticks - first.own_ticks);
    ticks += std::max<int64_t>(0, cpu.of_ended_ticks - first.of_ended_ticks - inherited[pid]);
  }
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

bool wants_processor(pid_t pid) {
  std::error_code code;
  for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", pid), code)) {
    const auto stat = read_kernel_file(task.path() / "stat");
    if (stat && stat->find(") R ", stat->rfind(')')) != std::string::npos) return true;
  }
  return false;
}

}  // namespace bakeoff::sample
