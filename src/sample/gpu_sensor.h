#pragma once

// A process's GPU as a sensor of a Sampler, read through the driver's management library (nvml.h). The
// library is loaded at the first sample, on the sampler's thread: a driver that hangs delays nothing else.
//
// | name               | unit | what                                                                    |
// |--------------------|------|-------------------------------------------------------------------------|
// | gpu_busy           |      | share of the last sampling period in which a kernel ran                 |
// | gpu_power_w        | W    | power of the board                                                      |
// | gpu_energy_j       | J    | since the driver was loaded; of a series, the last minus the first      |
// | gpu_memory_bytes   | B    | memory in use by all processes                                          |
// | gpu_sm_clock_hz    | Hz   | clock of the multiprocessors                                            |
// | gpu_temperature_c  | C    | temperature of the GPU                                                  |
// | gpu_processes      |      | number of processes that compute on it, ours included                   |
// | gpu_throttled      |      | 1: its clocks are reduced, 0: not; of a series, the share of samples    |
// | gpu_throttled: heat, ... | | the same for each of kThrottleReasons                                  |

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sample/nvml.h"
#include "sample/sampler.h"

namespace bakeoff::sample {

// The driver's library, loaded once and shared by the sensors of a race, also by sensors of threads that
// were abandoned in it.
class GpuLibrary {
 public:
  explicit GpuLibrary(std::filesystem::path library) : library_(std::move(library)) {}
  // The library for one thread, until it destroys this.
  struct Turn {
    std::unique_lock<std::mutex> lock;
    const Result<Nvml>& nvml;
  };
  // Loads the library at the first call; later calls return the same one. Returns nothing, at once, while
  // another thread uses it: the driver may never return from that call.
  std::optional<Turn> turn();

 private:
  std::filesystem::path library_;
  std::mutex mutex_;
  std::optional<Result<Nvml>> nvml_;
};

// Which of the machine's GPUs `pid` computes on: the one whose processes include it; else the only one;
// else the first of `visible` (CUDA_VISIBLE_DEVICES of its environment) if that is a number. Error: it
// cannot be determined.
Result<unsigned> gpu_of(const std::vector<GpuSnapshot>& gpus, pid_t pid, const std::string& visible);

// Sampled at most ten times a second. The first successful sample determines which GPU it is.
Sensor gpu_sensor(std::shared_ptr<GpuLibrary> library, pid_t pid, const std::string& visible = {});

}  // namespace bakeoff::sample
