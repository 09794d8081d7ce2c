#pragma once

// What one process does, read from outside: processor time, page faults, and how often it left a processor.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "base/result.h"
#include "sample/reading.h"

namespace bakeoff::sample {

// Cumulative numbers. Switches and waiting are sums over the threads that live now; page faults are of all
// threads.
struct ProcessSnapshot {
  Reading involuntary_switches;  // it lost the processor to another task
  Reading voluntary_switches;    // it waited for something
  Reading wait_s;                // it was runnable but had no processor
  Reading minor_faults, major_faults;
  bool operator==(const ProcessSnapshot&) const = default;
};

// Reads `root`/proc/<pid>/stat and task/*/. Numbers are absent if the process is gone, or if the kernel has
// no schedstat.
ProcessSnapshot sample_process(pid_t pid, const std::filesystem::path& root = "/");

// CPU time in ns of all threads, ended ones included, exact at this moment (the process's CPU clock,
// clock_getcpuclockid(3)). Error: the process is gone.
Result<int64_t> cpu_time_ns(pid_t pid);

// Processor time so far of a process, and of children that ended and that it waited for.
struct ProcessCpu {
  int64_t own_ticks = 0, of_ended_ticks = 0;
  pid_t parent = 0;
  bool operator==(const ProcessCpu&) const = default;
};
// Of every process; none where /proc is not readable.
std::map<pid_t, ProcessCpu> cpu_by_process(const std::filesystem::path& root = "/");
// What processes but `ours` used between two looks, s. Those that began and ended in between are included where their parents
// waited for them; of one that was there at first and ended unseen its last part is not.
double cpu_of_others_s(const std::map<pid_t, ProcessCpu>& before, const std::map<pid_t, ProcessCpu>& after,
                       const std::vector<pid_t>& ours);

// Whether one of its threads runs, or would run if a processor were free. False if the process is gone.
bool wants_processor(pid_t pid);

}  // namespace bakeoff::sample
