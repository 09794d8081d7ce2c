#pragma once

// What one process does, read from outside: processor time, page faults, and how often it left a processor.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
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

// Processor time so far of every process but `ours`, with that of children that they waited for, s. The difference of two
// calls is what others used in between, those that began and ended in between included. 0 where /proc is not readable.
double cpu_of_others_s(const std::vector<pid_t>& ours, const std::filesystem::path& root = "/");

// Whether one of its threads runs, or would run if a processor were free. False if the process is gone.
bool wants_processor(pid_t pid);

}  // namespace bakeoff::sample
