#pragma once

// What NVIDIA's GPUs are doing, by the management library of their driver, which is found at run time:
// nothing of it is needed to build. Types and numbers follow nvml.h, whose interface keeps them over
// versions.
//
//   TRY(const Nvml nvml, Nvml::load());        // error: why there is none
//   for (const GpuSnapshot& gpu : nvml.take()) // of every device, each number there or with its reason
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
  Reading busy;          // share of the last moment in which some kernel ran
  Reading memory_bytes;  // in use, by anybody
  Reading memory_total_bytes;
  Reading power_w;
  Reading energy_j;  // since the driver was loaded; Volta and later
  Reading sm_clock_hz, memory_clock_hz;
  Reading temperature_c;
  Reading processes;                // that compute on it, ours included
  std::vector<unsigned> pids = {};  // theirs, at most 64; within a container perhaps none, or the host's
  Reading throttled;                // 1: its clocks are held down, see why_throttled; 0: not
  std::string why_throttled = {};   // "power cap, heat": those that slow work down; idling is none
  uint64_t throttle_bits = 0;       // of kThrottleReasons
};

// What slows work down, by nvml.h's bits; not: idle (1), clocks set by an application (2), display (0x100).
struct ThrottleReason {
  uint64_t bit;
  const char* name;
};
inline constexpr ThrottleReason kThrottleReasons[] = {{0x4, "power cap"},          {0x8, "hardware slowdown"},
                                                      {0x10, "sync boost"},        {0x20, "heat"},
                                                      {0x40, "heat, by hardware"}, {0x80, "power brake"}};

class Nvml {
 public:
  // Initialises the library. Error with the loader's or the library's own reason.
  static Result<Nvml> load(const std::filesystem::path& library = "libnvidia-ml.so.1");
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();  // shuts it down

  // One for each device. A device that has fallen off the bus has its reason in every reading. A call may
  // take as long as the driver likes: not for a thread that must not wait.
  std::vector<GpuSnapshot> take() const;
  // Of one device, counted from 0.
  GpuSnapshot take(unsigned index) const;
  unsigned count() const;  // of devices

  // Holds the clock of a device's processors at `mhz` until it is reset, beyond the life of this process. For
  // root only; Volta and later. Error: the driver's reason.
  Status lock_clock(unsigned index, unsigned mhz) const;
  Status reset_clock(unsigned index) const;

 private:
  struct Calls;
  explicit Nvml(std::unique_ptr<Calls> calls);
  std::unique_ptr<Calls> calls_;
};

// Joules between two snapshots of the same device; absent where either has none, or the counter went back.
Reading gpu_energy_between(const GpuSnapshot& before, const GpuSnapshot& after);

}  // namespace bakeoff::sample
