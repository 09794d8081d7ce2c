#pragma once

// Energy in joules that the processors and their memory used, from the kernel's power capping interface
// (RAPL: Documentation/power/powercap/powercap.rst of Linux). A package counts all work on it, idle cores
// too.
//
//   const EnergySnapshot before = sample_energy();
//   ...
//   const Reading joules = energy_between(before, sample_energy());
//   if (!joules) ...  // joules.reason(): "there is no /sys/class/powercap", "not readable: ...", ...

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "sample/reading.h"

namespace bakeoff::sample {

struct EnergySnapshot {
  struct Zone {
    int64_t microjoules = 0;  // since an unknown time; wraps
    int64_t range = 0;        // the value at which it wraps; 0: unknown
    bool operator==(const Zone&) const = default;
  };
  int64_t ns = 0;                          // monotonic
  std::map<std::string, Zone> zones = {};  // "intel-rapl:0": packages, and memory that is counted separately
  std::string absent = {};                 // why there are no zones
  bool operator==(const EnergySnapshot&) const = default;
};

// Reads `root`/sys/class/powercap/intel-rapl:*, which AMD's processors have too. Zones that are part of
// another zone are left out.
EnergySnapshot sample_energy(const std::filesystem::path& root = "/");

// Joules of all zones. Absent if a zone appeared or disappeared; if one went backwards without a known
// range, or by a wrap that would mean more than 5,000 W (it was reset); or if no counter changed for more
// than kStandsStill: a counter that never changes measures nothing.
Reading energy_between(const EnergySnapshot& before, const EnergySnapshot& after);

inline constexpr int64_t kStandsStill = 20'000'000;  // ns; the counters are updated about every millisecond

}  // namespace bakeoff::sample
