#pragma once

// What a worker's process used during a burst, and what that comes to for a contender. Taken from outside,
// while the worker is frozen: nothing samples while it computes.
//
//   const UsageMark before = mark_usage(pid);
//   ... a burst ...
//   burst.used = usage_between(before, mark_usage(pid), trial.not_sampled);
//
// | name                 | unit | what                                                                     |
// |----------------------|------|--------------------------------------------------------------------------|
// | wall_s               | s    | between the two marks: the burst, its request, a look at what follows it |
// | cpu_s                | s    | processor time of all threads                                            |
// | wait_s               | s    | threads were runnable, but no processor was free                         |
// | minor_faults         |      | pages of memory that were set up                                         |
// | major_faults         |      | pages that came from a disk                                              |
// | voluntary_switches   |      | threads that waited for something                                        |
// | involuntary_switches |      | threads that were pushed off a processor                                 |
// | energy_j             | J    | the processors' packages and memory, all work on them included           |
// | instructions, cycles, cache_misses, branch_misses | | outside the kernel (sample/perf_counters.h)    |
//
// More is sampled during bursts: race/sensing.h.

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
  int64_t ns = 0;       // monotonic, before the readings
  int64_t read_ns = 0;  // once processor time was read: on a busy machine that can take a while
  sample::Reading cpu_s = {};
  sample::ProcessSnapshot process = {};
  sample::EnergySnapshot energy = {};
  sample::PerfSnapshot perf = {};  // left empty by mark_usage(): the counters are the caller's
};

// `root`: where /proc and /sys are; processor time always comes from the kernel itself.
UsageMark mark_usage(pid_t pid, const std::filesystem::path& root = "/");

// By name; wall_s is the longest that processor time can have come from. What is absent, or went backwards (a
// thread ended), is left out, with its reason in `absent`.
std::map<std::string, double> usage_between(const UsageMark& before, const UsageMark& after, Texts& absent);

// Seconds of processor time of a process, its descendants (workers of a DataLoader), and those of them that
// ended; of the descendants in the kernel's ticks, from <root>/proc/<pid>/stat. What cannot be read adds
// nothing.
double tree_cpu_s(pid_t pid, const std::filesystem::path& root = "/");

}  // namespace bakeoff
