#pragma once

// What one process is doing, seen from outside: processor time, page faults, and how often it left a
// processor.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "sample/reading.h"

namespace bakeoff::sample {

// Cumulative. Switches and waiting are sums over the threads that live now; page faults are all of its.
struct ProcessSnapshot {
  Reading involuntary_switches;  // somebody else got the processor
  Reading voluntary_switches;    // it waited for something
  Reading wait_s;                // runnable, but waiting for a processor
  Reading minor_faults, major_faults;
  bool operator==(const ProcessSnapshot&) const = default;
};

// From <root>/proc/<pid>/stat and task/*/. Absent where the process is gone, or where the kernel keeps no
// schedstat.
ProcessSnapshot sample_process(pid_t pid, const std::filesystem::path& root = "/");

// Nanoseconds of processor time of all threads, past ones included, exact to the moment (the process's CPU
// clock, clock_getcpuclockid(3)). Error where the process is gone.
Result<int64_t> cpu_time_ns(pid_t pid);

// Whether a thread of it runs, or would if a processor were free. False where the process is gone.
bool wants_processor(pid_t pid);

}  // namespace bakeoff::sample
