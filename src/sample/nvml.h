#pragma once

// The state of NVIDIA GPUs, from the management library of their driver. The library is loaded at run time;
// the build needs nothing of it. Types and numbers follow nvml.h, whose interface is stable over versions.
//
//   TRY(const Nvml nvml, Nvml::load());        // error: why there is none
//   for (const GpuSnapshot& gpu : nvml.take()) // every device; each number has a value or a reason
//     if (gpu.power_w) ...

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "sample/reading.h"

namespace bakeoff::sample {

struct GpuSnapshot {
  int64_t ns = 0;  // monotonic
  std::string name = {};
  Reading busy;          // share of the driver's last sampling period in which a kernel ran
  Reading memory_bytes;  // in use by all processes
  Reading memory_total_bytes;
  Reading power_w;
  Reading energy_j;  // since the driver was loaded; Volta and later
  Reading sm_clock_hz, memory_clock_hz;
  Reading temperature_c;
  Reading processes;                // number of processes that compute on it, ours included
  std::vector<unsigned> pids = {};  // their ids, at most 64; in a container perhaps none, or the host's
  Reading throttled;                // 1: its clocks are reduced (why_throttled); 0: not
  std::string why_throttled = {};   // "power cap, heat": reasons that slow work down, without idling
  uint64_t throttle_bits = 0;       // bits of kThrottleReasons
};

// Reasons that slow work down, by nvml.h's bits; not: idle (1), clocks set by an application (2), display
// (0x100).
struct ThrottleReason {
  uint64_t bit;
  const char* name;
};
inline constexpr ThrottleReason kThrottleReasons[] = {{0x4, "power cap"},          {0x8, "hardware slowdown"},
                                                      {0x10, "sync boost"},        {0x20, "heat"},
                                                      {0x40, "heat, by hardware"}, {0x80, "power brake"}};

class Nvml {
 public:
  // Loads and initialises the library. Errors quote the loader or the library.
  static Result<Nvml> load(const std::filesystem::path& library = "libnvidia-ml.so.1");
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();  // shuts it down

  // Snapshots of all devices. A device that has fallen off the bus has that reason in every reading. The
  // call takes as long as the driver needs, so it is not for a thread that must not wait.
  std::vector<GpuSnapshot> take() const;
  // Snapshot of one device, counted from 0.
  GpuSnapshot take(unsigned index) const;
  unsigned count() const;  // number of devices
  // Locks the clock of a device's processors at `mhz` until it is reset, even after this process ends. Root
  // only; Volta and later. Error: the driver's reason.
  Status lock_clock(unsigned index, unsigned mhz) const;
  Status reset_clock(unsigned index) const;

 private:
  struct Calls;
  explicit Nvml(std::unique_ptr<Calls> calls);
  std::unique_ptr<Calls> calls_;
};

}  // namespace bakeoff::sample
