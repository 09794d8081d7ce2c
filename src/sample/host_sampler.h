#pragma once

// What the whole machine does: cumulative counters are read twice, and compared.
//
//   const HostSampler sampler({.cpus = {0, 1}});
//   const HostSnapshot before = sampler.take();
//   ... a round of bursts that used 1.9 s of processor time ...
//   const HostChange seen = change(before, sampler.take(), /*own_cpu_s=*/1.9);
//   if (seen.others && *seen.others > 0.1) ...  // other processes used a tenth of our processors
//
// A number that cannot be read (old kernel, container without /proc/pressure) has its reason instead.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "sample/cgroup.h"
#include "sample/reading.h"

namespace bakeoff::sample {

struct HostOptions {
  std::filesystem::path root = "/";  // folder that contains proc/ and sys/
  std::vector<int> cpus = {};        // the CPUs that matter; empty: all
  const Clock* clock = nullptr;      // null: CLOCK_MONOTONIC
  double ticks_per_s = 0;            // unit of /proc/stat; 0: sysconf(_SC_CLK_TCK)
  bool probe_clock = true;           // run clock_probe(), 2 ms
};

struct HostSnapshot {
  int64_t ns = 0;    // monotonic
  size_t cpus = 0;   // number of CPUs that busy_s and steal_s are summed over
  Reading uptime_s;  // sleep included
  // Cumulative seconds.
  Reading busy_s, steal_s;  // of these CPUs
  Reading throttled_s;      // taken by our cgroup's quota, of all processors together
  // Seconds in which a task of our cgroup waited; any task of the machine if the kernel does not count
  // groups.
  Reading cpu_pressure_s, memory_pressure_s, io_pressure_s;
  // Values at this moment.
  Reading run_queue;  // runnable tasks, without the one that reads this
  Reading load;
  Reading clock_ghz;  // clock_probe()
  CgroupMemory cgroup_memory;
  bool operator==(const HostSnapshot&) const = default;
};

struct HostChange {
  double wall_s = 0;
  // Shares of the processors' time.
  Reading steal;
  Reading others;     // used by other processes
  Reading throttled;  // taken by our cgroup's quota
  // Shares of the wall time.
  Reading cpu_pressure, memory_pressure, io_pressure;
  Reading run_queue;                              // the larger of the two snapshots
  Reading load;                                   // the later snapshot
  Reading cgroup_peak_bytes, cgroup_limit_bytes;  // of all processes in our cgroup; the later snapshot
  // The faster clock probe divided by the slower one, minus 1.
  Reading clock_change;
  Reading slept_s;  // how long the machine was suspended in between
  bool operator==(const HostChange&) const = default;
};

class HostSampler {
 public:
  explicit HostSampler(HostOptions options = {}) : options_(std::move(options)) {}
  HostSnapshot take() const;

 private:
  HostOptions options_;
};

// The ticks of /proc/stat are coarse: for less wall time than this, shares of the processors are absent.
inline constexpr double kLeastWall = 0.25;

// own_cpu_s: CPU time that our own processes used in between. A counter that went backwards (it wrapped, or
// a processor went offline) is absent.
HostChange change(const HostSnapshot& before, const HostSnapshot& after, double own_cpu_s);

}  // namespace bakeoff::sample
