#pragma once

// Locks the clocks of NVIDIA GPUs during a run. A separate process locks them, waits on a pipe, and
// releases them when the pipe closes: when the keeper is destroyed, or when its owner dies in any way. Only
// root may lock them; without the right or without a driver nothing is locked, and status() says why.
//
//   const ClockKeeper keeper(1200, "libnvidia-ml.so.1");
//   trial.effective["gpu_clock"] = keeper.status();

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "proc/fd.h"

namespace bakeoff {

class ClockKeeper {
 public:
  // Locks all devices at `mhz`, a clock of their processors; the driver uses the nearest one that it has.
  ClockKeeper(int64_t mhz, const std::filesystem::path& library);
  ClockKeeper(const ClockKeeper&) = delete;
  ClockKeeper& operator=(const ClockKeeper&) = delete;
  ~ClockKeeper();  // returns after the clocks are released, or after 10 s if the driver does not answer

  // "1200 MHz"; "not locked: Insufficient Permissions"; "1200 MHz, but not GPU 1: GPU is lost".
  const std::string& status() const { return status_; }

 private:
  proc::UniqueFd pipe_;  // pipe to the process, which ends when this closes
  pid_t process_ = -1;
  std::string status_;
};

}  // namespace bakeoff
