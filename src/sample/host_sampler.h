#pragma once

// What the whole machine is doing: cumulative counters taken twice, and what happened between.
//
//   const HostSampler sampler({.cpus = {0, 1}});
//   const HostSnapshot before = sampler.take();
//   ... a round of bursts that used 1.9 s of processor time ...
//   const HostChange seen = change(before, sampler.take(), /*own_cpu_s=*/1.9);
//   if (seen.others && *seen.others > 0.1) ...  // somebody else used a tenth of our processors
//
// Everything that cannot be read (an old kernel, a container without /proc/pressure) has its reason instead.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "sample/cgroup.h"
#include "sample/reading.h"

namespace bakeoff::sample {

struct HostOptions {
  std::filesystem::path root = "/";  // proc/ and sys/ are looked for below
  std::vector<int> cpus = {};        // those that matter; empty: all
  const Clock* clock = nullptr;      // null: CLOCK_MONOTONIC
  double ticks_per_s = 0;            // of /proc/stat; 0: sysconf(_SC_CLK_TCK)
  bool probe_clock = true;           // run clock_probe(), 2 ms
};

struct HostSnapshot {
  int64_t ns = 0;    // monotonic
  size_t cpus = 0;   // how many the first two are summed over
  Reading uptime_s;  // sleep included
  // Cumulative seconds.
  Reading busy_s, steal_s;  // of those processors
  Reading throttled_s;      // by our cgroup's quota, of all processors together
  // In which a task of our cgroup waited; of any on the machine where the kernel keeps no group's.
  Reading cpu_pressure_s, memory_pressure_s, io_pressure_s;
  // Now.
  Reading run_queue;  // runnable tasks besides the one that reads this
  Reading load;
  Reading clock_ghz;  // clock_probe()
  CgroupMemory cgroup_memory;
  bool operator==(const HostSnapshot&) const = default;
};

struct HostChange {
  double wall_s = 0;
  // Of the processors' time.
  Reading steal;
  Reading others;     // used by anybody but us
  Reading throttled;  // taken by our cgroup's quota
  // Of the wall time.
  Reading cpu_pressure, memory_pressure, io_pressure;
  Reading run_queue;                              // the larger of the two
  Reading load;                                   // the later
  Reading cgroup_peak_bytes, cgroup_limit_bytes;  // of all in our cgroup; the later
  // The faster probe over the slower one, less 1.
  Reading clock_change;
  Reading slept_s;  // the machine was suspended for so long meanwhile
  bool operator==(const HostChange&) const = default;
};

class HostSampler {
 public:
  explicit HostSampler(HostOptions options = {}) : options_(std::move(options)) {}
  HostSnapshot take() const;

 private:
  HostOptions options_;
};

// Ticks of /proc/stat are coarse: below this much wall time shares of the processors are not told.
inline constexpr double kLeastWall = 0.25;

// own_cpu_s: processor time that our own processes used meanwhile. A counter that went backwards (it wrapped,
// a processor went offline) is absent for this once.
HostChange change(const HostSnapshot& before, const HostSnapshot& after, double own_cpu_s);

}  // namespace bakeoff::sample
