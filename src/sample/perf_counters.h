#pragma once

// Hardware counters of a process, by perf_event_open(2): instructions, cycles, cache misses and
// mispredicted branches of all its threads, those that it starts later included.
//
//   const PerfCounters counters = PerfCounters::attach(pid);
//   const PerfSnapshot before = counters.take();
//   ...
//   const auto used = perf_between(before, counters.take());
//   if (!used[0]) ...  // used[0].reason(): "not permitted: kernel.perf_event_paranoid is 3, ..."
//
// A counter is used only after it has counted a known piece of this program's own work: one that reads zero
// then is absent, as in many virtual machines. If more counters are wanted than the processor has, the
// kernel alternates them, and the counts are scaled up to the whole time. Only work outside the kernel is
// counted.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sample/reading.h"

namespace bakeoff::sample {

inline constexpr std::array<const char*, 4> kPerfNames = {"instructions", "cycles", "cache_misses",
                                                          "branch_misses"};

// The kernel's data of one counter: its value, and how long it was requested and really counted.
struct PerfCount {
  uint64_t value = 0, enabled_ns = 0, running_ns = 0;
  bool operator==(const PerfCount&) const = default;
};

// The system calls, which tests replace.
struct PerfSystem {
  // Opens a counter of kPerfNames (by index) on thread `tid` (0: the caller's) and the threads that it
  // starts. Returns a handle, or the negative error number.
  std::function<int(size_t name, pid_t tid)> open = {};
  std::function<bool(int handle, PerfCount&)> read = {};
  std::function<void(int handle)> close = {};
  std::function<std::vector<pid_t>(pid_t)> threads = {};  // threads of a process
  std::filesystem::path root = "/";                       // folder of proc/, for kernel.perf_event_paranoid
};
PerfSystem kernel_perf();

struct PerfSnapshot {
  std::array<std::vector<PerfCount>, kPerfNames.size()> counts = {};  // one for each thread attached to
  std::array<std::string, kPerfNames.size()> absent = {};             // why there are none
};

class PerfCounters {
 public:
  // Attached to nothing: every reading is absent, "not read".
  PerfCounters() = default;
  static PerfCounters attach(pid_t pid, const PerfSystem& system = kernel_perf());
  PerfSnapshot take() const;

 private:
  struct Open;
  std::shared_ptr<const Open> open_;
};

// Differences, parallel to kPerfNames.
std::array<Reading, kPerfNames.size()> perf_between(const PerfSnapshot& before, const PerfSnapshot& after);

// The meaning of an error number of perf_event_open, with the remedy if there is one.
std::string perf_reason(int error, const std::filesystem::path& root);

}  // namespace bakeoff::sample
