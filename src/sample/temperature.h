#pragma once

// The temperature of the processors, from the kernel's hardware monitoring
// (Documentation/hwmon/sysfs-interface of Linux): one number for each package; the highest is used. If
// there is none, the kernel's thermal zones are used.

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "sample/sampler.h"

namespace bakeoff::sample {

// The files that hold it, in thousandths of a degree: `root`/sys/class/hwmon/hwmon3/temp1_input, ... Error:
// there is none, and what the system has instead.
Result<std::vector<std::filesystem::path>> find_temperatures(const std::filesystem::path& root);

// "temperature_c", sampled at most once a second: some processors must be woken to read it.
Sensor temperature_sensor(const std::filesystem::path& root = "/");

}  // namespace bakeoff::sample
