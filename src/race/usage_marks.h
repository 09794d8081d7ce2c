#pragma once

// What a worker's process used during a burst. It is read from outside while the worker is frozen: nothing
// samples while it computes.
//
//   const UsageMark before = mark_usage(pid);
//   ... a burst ...
//   burst.used = usage_between(before, mark_usage(pid), trial.not_sampled);
//
// | name                 | unit | what                                                                     |
// |----------------------|------|--------------------------------------------------------------------------|
// | wall_s               | s    | between the marks: request, burst, and watching the process after it    |
// | cpu_s                | s    | processor time of all threads                                            |
// | wait_s               | s    | time of threads that were runnable while no processor was free           |
// | minor_faults         |      | page faults that needed no disk                                          |
// | major_faults         |      | page faults that waited for a disk                                       |
// | voluntary_switches   |      | context switches of threads that waited for something                    |
// | involuntary_switches |      | context switches of threads that lost their processor                    |
// | energy_j             | J    | energy of the processors' packages and memory, other work included       |
// | instructions, cycles, cache_misses, branch_misses | | outside the kernel (sample/perf_counters.h)    |
//
// race/sensing.h samples more during bursts.

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/texts.h"
#include "sample/energy.h"
#include "sample/perf_counters.h"
#include "sample/process_sampler.h"

namespace bakeoff {

struct UsageMark {
  int64_t ns = 0;       // monotonic clock before the readings
  int64_t read_ns = 0;  // after processor time was read, which can take a while on a busy machine
  sample::Reading cpu_s = {};
  sample::ProcessSnapshot process = {};
  sample::EnergySnapshot energy = {};
  sample::PerfSnapshot perf = {};  // mark_usage() leaves it empty: the caller reads the counters
};

// `root`: folder that contains /proc and /sys; processor time always comes from the kernel itself.
UsageMark mark_usage(pid_t pid, const std::filesystem::path& root = "/");

// The numbers by name. wall_s is the longest time in which the processor time can have been used. A number
// that is absent or went backwards (a thread ended) is left out; `absent` has the reason.
std::map<std::string, double> usage_between(const UsageMark& before, const UsageMark& after, Texts& absent);

// CPU seconds of a process, its living descendants (workers of a DataLoader) and ended ones;
// descendants in the kernel's ticks, from `root`/proc/<pid>/stat. What cannot be read adds nothing.
double tree_cpu_s(pid_t pid, const std::filesystem::path& root = "/");

}  // namespace bakeoff
