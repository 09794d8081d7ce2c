#pragma once

// A process's GPU as a sensor of a Sampler, by the driver's management library (nvml.h). The library is
// loaded at the first look, on the sampler's thread: a driver that hangs holds nobody else up.
//
// | name               | unit | what                                                                    |
// |--------------------|------|-------------------------------------------------------------------------|
// | gpu_busy           |      | share of the last moment in which some kernel ran                       |
// | gpu_power_w        | W    | of the board                                                            |
// | gpu_energy_j       | J    | since the driver was loaded: last less first of a series                |
// | gpu_memory_bytes   | B    | in use, by anybody                                                      |
// | gpu_sm_clock_hz    | Hz   | of the multiprocessors                                                  |
// | gpu_temperature_c  | C    |                                                                         |
// | gpu_processes      |      | that compute on it, ours included                                       |
// | gpu_throttled      |      | 1: its clocks are held down, 0: not; of a series, the share of the looks |
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

// The driver's library, loaded once and shared by the sensors of a race, also by those of threads that were
// left behind in it.
class GpuLibrary {
 public:
  explicit GpuLibrary(std::filesystem::path library) : library_(std::move(library)) {}
  // The library for one thread, as long as it keeps this.
  struct Turn {
    std::unique_lock<std::mutex> lock;
    const Result<Nvml>& nvml;
  };
  // Loads it at the first call; later ones give the same. Nothing, and at once, while another thread has it:
  // the driver may never let that one go.
  std::optional<Turn> turn();

 private:
  std::filesystem::path library_;
  std::mutex mutex_;
  std::optional<Result<Nvml>> nvml_;
};

// Which of the machine's GPUs `pid` computes on: the one whose processes name it; the only one; the first of
// `visible` (CUDA_VISIBLE_DEVICES of its environment), where that is a number. Error: it cannot be told.
Result<unsigned> gpu_of(const std::vector<GpuSnapshot>& gpus, pid_t pid, const std::string& visible);

// Looked at ten times a second at most. Which GPU it is follows from the first look that tells.
Sensor gpu_sensor(std::shared_ptr<GpuLibrary> library, pid_t pid, const std::string& visible = {});

}  // namespace bakeoff::sample
