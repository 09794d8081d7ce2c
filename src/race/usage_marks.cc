#include "race/usage_marks.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/kernel_file.h"
#include "proc/process_tree.h"
#include "sample/counters.h"

namespace bakeoff {

UsageMark mark_usage(pid_t pid, const std::filesystem::path& root) {
  UsageMark mark{.ns = monotonic_clock().now_ns()};
  const auto cpu = sample::cpu_time_ns(pid);
  mark.cpu_s = cpu ? sample::Reading(tree_cpu_s(pid, root)) : sample::Reading::absent(cpu.error().message);
  mark.read_ns = monotonic_clock().now_ns();
  mark.process = sample::sample_process(pid, root);
  mark.energy = sample::sample_energy(root);
  return mark;
}

std::map<std::string, double> usage_between(const UsageMark& before, const UsageMark& after, Texts& absent) {
  std::map<std::string, double> used;
  used["wall_s"] = static_cast<double>(after.read_ns - before.ns) / 1e9;
  const auto take = [&](const char* name, const sample::Reading& then, const sample::Reading& now) {
    if (then && now && *now >= *then)
      used[name] = *now - *then;
    else
      absent[name] = !then ? then.reason() : !now ? now.reason() : "a counter went backwards";
  };
  take("cpu_s", before.cpu_s, after.cpu_s);
  const sample::ProcessSnapshot &b = before.process, &a = after.process;
  take("wait_s", b.wait_s, a.wait_s);
  take("minor_faults", b.minor_faults, a.minor_faults);
  take("major_faults", b.major_faults, a.major_faults);
  take("voluntary_switches", b.voluntary_switches, a.voluntary_switches);
  take("involuntary_switches", b.involuntary_switches, a.involuntary_switches);
  take("energy_j", 0.0, sample::energy_between(before.energy, after.energy));
  const auto counted = sample::perf_between(before.perf, after.perf);
  for (size_t i = 0; i < counted.size(); ++i) take(sample::kPerfNames[i], 0.0, counted[i]);
  return used;
}

namespace {

sample::CpuTicks ticks_of(pid_t pid, const std::filesystem::path& root) {
  const auto stat = read_kernel_file(root / "proc" / std::to_string(pid) / "stat");
  if (!stat) return {};
  const auto ticks = sample::parse_cpu_ticks(*stat);
  return ticks ? *ticks : sample::CpuTicks{};
}

}  // namespace

double tree_cpu_s(pid_t pid, const std::filesystem::path& root) {
  const auto own = sample::cpu_time_ns(pid);
  int64_t ns = own ? *own : 0, ticks = ticks_of(pid, root).of_ended_children;
  for (const pid_t child : proc::descendants(pid)) {
    const sample::CpuTicks spent = ticks_of(child, root);
    const auto exact = sample::cpu_time_ns(child);
    ns += exact ? *exact : 0;
    ticks += (exact ? 0 : spent.own) + spent.of_ended_children;
  }
  return static_cast<double>(ns) / 1e9 +
         static_cast<double>(ticks) / static_cast<double>(std::max(::sysconf(_SC_CLK_TCK), 1L));
}

}  // namespace bakeoff
