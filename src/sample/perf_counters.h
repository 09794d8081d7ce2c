#pragma once

// What a process makes its processors count, by perf_event_open(2): instructions, cycles, cache misses and
// mispredicted branches of all its threads, those that it starts later included.
//
//   const PerfCounters counters = PerfCounters::attach(pid);
//   const PerfSnapshot before = counters.take();
//   ...
//   const auto used = perf_between(before, counters.take());
//   if (!used[0]) ...  // used[0].reason(): "not permitted: kernel.perf_event_paranoid is 3, ..."
//
// A counter is trusted only after it has counted a known piece of work of this program's own: one that reads
// zero then is missing, as in many virtual machines. Where more counters are wanted than the processor has,
// the kernel takes turns, and what was counted is scaled up to the whole time. Only work outside the kernel
// counts.

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

// What the kernel keeps of one counter: how often, and for how long it was wanted and had.
struct PerfCount {
  uint64_t value = 0, enabled_ns = 0, running_ns = 0;
  bool operator==(const PerfCount&) const = default;
};

// The calls behind it, which tests replace.
struct PerfSystem {
  // A counter of kPerfNames (by index) on thread `tid` (0: the caller's) and threads it starts; gives a
  // handle, or minus the error number.
  std::function<int(size_t name, pid_t tid)> open = {};
  std::function<bool(int handle, PerfCount&)> read = {};
  std::function<void(int handle)> close = {};
  std::function<std::vector<pid_t>(pid_t)> threads = {};  // of a process
  std::filesystem::path root = "/";                       // where kernel.perf_event_paranoid is read
};
PerfSystem kernel_perf();

struct PerfSnapshot {
  std::array<std::vector<PerfCount>, kPerfNames.size()> counts = {};  // one a thread that was attached to
  std::array<std::string, kPerfNames.size()> absent = {};             // why there are none
};

class PerfCounters {
 public:
  // Nothing is attached to: every reading is absent, "not read".
  PerfCounters() = default;
  static PerfCounters attach(pid_t pid, const PerfSystem& system = kernel_perf());
  PerfSnapshot take() const;

 private:
  struct Open;
  std::shared_ptr<const Open> open_;
};

// Parallel to kPerfNames.
std::array<Reading, kPerfNames.size()> perf_between(const PerfSnapshot& before, const PerfSnapshot& after);

// What the error number of perf_event_open says, with the remedy where there is one.
std::string perf_reason(int error, const std::filesystem::path& root);

}  // namespace bakeoff::sample
