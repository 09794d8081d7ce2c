#pragma once

// Where a race and its studies read what the machine does. Tests point it at files and libraries of their own.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "roofline/limits.h"
#include "sample/host_probe.h"

namespace bakeoff {

struct Sensed {
  sample::HostProbe host = {};       // reads the host around every round; empty: this machine
  std::filesystem::path root = "/";  // folder that contains the /proc and /sys of evidence/usage.h
  std::filesystem::path gpu_library = "libnvidia-ml.so.1";  // the driver's library, for race/sensing.h
  std::string gpu_clock = {};  // result of locking the GPU clocks (machine/clock_keeper.h); empty: not done
  // Measures the limits of these CPUs if the run has no machine report; empty: roofline::measure_bounds.
  std::function<roofline::Limits(const std::vector<int>& cpus)> measure_peak = {};

  // What reads the host while workers run on these CPUs.
  sample::HostProbe probe(const std::vector<int>& cpus) const {
    return host ? host : sample::host_probe(cpus, root);
  }
};

}  // namespace bakeoff
