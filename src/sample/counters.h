#pragma once

// Parsers of the kernel's text files. Pure; errors name what is wrong with the text. Formats: proc(5),
// Documentation/accounting/psi.rst and Documentation/admin-guide/cgroup-v2.rst of Linux.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bakeoff::sample {

// Seconds since the machine started.
struct CpuSeconds {
  double busy = 0;   // user + nice + system + irq + softirq
  double steal = 0;  // it wanted to run, but the hypervisor ran another machine
  bool operator==(const CpuSeconds&) const = default;
};

// /proc/stat.
struct Stat {
  std::map<int, CpuSeconds> cpus = {};  // online CPUs, by number
  int64_t running = 0;                  // runnable tasks now, those on a processor included
  bool operator==(const Stat&) const = default;
};
// ticks_per_s: sysconf(_SC_CLK_TCK).
Result<Stat> parse_stat(std::string_view text, double ticks_per_s);

// /proc/pressure/<resource>, or a cgroup's <resource>.pressure: seconds in which some task was delayed.
Result<double> parse_pressure_some_s(std::string_view text);

// cpu.stat of a cgroup, v2 (throttled_usec) or v1 (throttled_time, ns): seconds in which its CPU quota
// stopped it.
Result<double> parse_throttled_s(std::string_view text);

// /proc/loadavg: the mean of the last minute.
Result<double> parse_load(std::string_view text);

// /proc/uptime: seconds since boot, sleep included.
Result<double> parse_uptime_s(std::string_view text);

// "nonvoluntary_ctxt_switches" of /proc/<pid>/task/<tid>/status.
Result<int64_t> parse_involuntary_switches(std::string_view text);

// "voluntary_ctxt_switches" of the same file: the thread waited for something.
Result<int64_t> parse_voluntary_switches(std::string_view text);

// /proc/<pid>/stat: page faults of a process since it began, without those of children that it waited for.
struct PageFaults {
  int64_t minor = 0;  // page faults that needed no disk
  int64_t major = 0;  // page faults that waited for a disk
  bool operator==(const PageFaults&) const = default;
};
Result<PageFaults> parse_page_faults(std::string_view text);

// /proc/<pid>/stat: the kernel's ticks of processor time, user and system together.
struct CpuTicks {
  int64_t own = 0;
  int64_t of_ended_children = 0;  // of children that ended and that it waited for
  bool operator==(const CpuTicks&) const = default;
};
Result<CpuTicks> parse_cpu_ticks(std::string_view text);

// /proc/<pid>/task/<tid>/schedstat: nanoseconds on a processor, and nanoseconds runnable without a processor.
struct SchedStat {
  int64_t run_ns = 0;
  int64_t wait_ns = 0;
  bool operator==(const SchedStat&) const = default;
};
Result<SchedStat> parse_schedstat(std::string_view text);

// /proc/self/cgroup: the group of this process, by hierarchy ("" for v2, "cpu" for v1's controller).
std::map<std::string, std::string> parse_cgroups(std::string_view text);

}  // namespace bakeoff::sample
