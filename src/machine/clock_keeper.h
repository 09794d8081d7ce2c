#pragma once

// Holds the clocks of NVIDIA's GPUs while a run lasts. A process of its own locks them, waits on a pipe, and
// gives them back once the pipe closes: when the keeper is destroyed, or when its owner has died, however
// suddenly. Only root may; without the right, or without a driver, nothing is locked and words() has the
// reason.
//
//   const ClockKeeper keeper(1200, "libnvidia-ml.so.1");
//   trial.effective["gpu_clock"] = keeper.words();

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "proc/fd.h"

namespace bakeoff {

class ClockKeeper {
 public:
  // All devices, at `mhz` (their processors' clock; the driver takes the nearest it has).
  ClockKeeper(int64_t mhz, const std::filesystem::path& library);
  ClockKeeper(const ClockKeeper&) = delete;
  ClockKeeper& operator=(const ClockKeeper&) = delete;
  ~ClockKeeper();  // returns once the clocks are given back, or after 10 s of a driver that does not answer

  // "1200 MHz"; "not locked: Insufficient Permissions"; "1200 MHz, but not GPU 1: GPU is lost".
  const std::string& words() const { return words_; }

 private:
  proc::UniqueFd leash_;  // the process ends when this closes
  pid_t process_ = -1;
  std::string words_;
};

}  // namespace bakeoff
