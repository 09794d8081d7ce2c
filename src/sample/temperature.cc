#include "sample/temperature.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/kernel_file.h"
#include "sample/sensor_file.h"

namespace bakeoff::sample {
namespace {

// Neither colder nor hotter is a processor that computes: a sensor that says so is not connected.
constexpr double kColdest = -50, kHottest = 200;

// Drivers of sensors within processors.
bool of_processor(const std::string& name) {
  static const std::set<std::string> kDrivers = {"coretemp",    "k10temp",     "k8temp",     "zenpower",
                                                 "cpu_thermal", "cpu-thermal", "via_cputemp"};
  return kDrivers.contains(name);
}
bool zone_of_processor(const std::string& type) {
  return type == "x86_pkg_temp" || type.starts_with("cpu-thermal") || type.starts_with("cpu_thermal");
}

// The folders below `folder` whose file `key` names a processor, and in each the first of `files` there is.
std::vector<fs::path> files_in(const fs::path& folder, const char* key, bool (*wanted)(const std::string&),
                               const std::vector<std::string>& files) {
  std::vector<fs::path> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (!wanted(kernel_line(entry.path() / key))) continue;
    const auto file = std::find_if(files.begin(), files.end(), [&](const std::string& name) {
      return fs::exists(entry.path() / name, code);
    });
    if (file != files.end()) found.push_back(entry.path() / *file);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Reading degrees(const Result<std::string_view>& line) {
  if (!line) return Reading::absent(line.error().message);
  int64_t thousandths = 0;
  const auto [end, code] = std::from_chars(line->data(), line->data() + line->size(), thousandths);
  const double value = static_cast<double>(thousandths) / 1e3;
  if (code != std::errc() || end != line->data() + line->size() || value < kColdest || value > kHottest)
    return Reading::absent(fmt::format("the temperature is not as expected: '{}'", line->substr(0, 40)));
  return value;
}

}  // namespace

Result<std::vector<fs::path>> find_temperatures(const fs::path& root) {
  // The first one is the package's; the others are cores, which are colder or as hot.
  const std::vector<std::string> inputs = {"temp1_input", "temp2_input", "temp3_input"};
  auto found = files_in(root / "sys/class/hwmon", "name", of_processor, inputs);
  if (found.empty()) found = files_in(root / "sys/class/thermal", "type", zone_of_processor, {"temp"});
  if (!found.empty()) return found;
  std::error_code code;
  if (!fs::is_directory(root / "sys/class/hwmon", code))
    return Error{.message = "there is no /sys/class/hwmon, and no thermal zone of a processor"};
  return Error{.message = "/sys/class/hwmon has no sensor of a processor"};
}

Sensor temperature_sensor(const fs::path& root) {
  Sensor sensor{.names = {"temperature_c"}, .least_ns = kSecond};
  const auto found = find_temperatures(root);
  if (!found) {
    sensor.read = [why = found.error().message](std::span<Reading> out) { out[0] = Reading::absent(why); };
    return sensor;
  }
  std::vector<std::shared_ptr<SensorFile>> files;
  for (const fs::path& path : *found) files.push_back(std::make_shared<SensorFile>(path));
  sensor.read = [files](std::span<Reading> out) {
    for (size_t i = 0; i < files.size(); ++i) {
      const Reading package = degrees(files[i]->read());
      if (i == 0 || !out[0] || (package && *package > *out[0])) out[0] = package;
    }
  };
  return sensor;
}

}  // namespace bakeoff::sample
