#pragma once

// The temperature of the processors, from the kernel's hardware monitoring
// (Documentation/hwmon/sysfs-interface of Linux): one number a package, and of these the hottest. Where there
// is none, from its thermal zones.

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "sample/sampler.h"

namespace bakeoff::sample {

// The files that tell it, in thousandths of a degree: ROOT/sys/class/hwmon/hwmon3/temp1_input, ... Error:
// there is none, and what there is instead.
Result<std::vector<std::filesystem::path>> find_temperatures(const std::filesystem::path& root);

// "temperature_c", looked at once a second at most: some processors have to be woken to tell it.
Sensor temperature_sensor(const std::filesystem::path& root = "/");

}  // namespace bakeoff::sample
