#include "sample/gpu_sensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace bakeoff::sample {
namespace {

constexpr int64_t kTenth = 100'000'000;

struct Named {
  const char* name;
  Reading GpuSnapshot::*reading;
};
constexpr Named kNamed[] = {{"gpu_busy", &GpuSnapshot::busy},
                            {"gpu_power_w", &GpuSnapshot::power_w},
                            {"gpu_energy_j", &GpuSnapshot::energy_j},
                            {"gpu_memory_bytes", &GpuSnapshot::memory_bytes},
                            {"gpu_sm_clock_hz", &GpuSnapshot::sm_clock_hz},
                            {"gpu_temperature_c", &GpuSnapshot::temperature_c},
                            {"gpu_processes", &GpuSnapshot::processes},
                            {"gpu_throttled", &GpuSnapshot::throttled}};

void fill(const GpuSnapshot& gpu, std::span<Reading> out) {
  size_t i = 0;
  for (const Named& one : kNamed) out[i++] = gpu.*one.reading;
  for (const ThrottleReason& reason : kThrottleReasons)
    out[i++] = gpu.throttled ? Reading((gpu.throttle_bits & reason.bit) != 0 ? 1.0 : 0.0) : gpu.throttled;
}

}  // namespace

std::optional<GpuLibrary::Turn> GpuLibrary::turn() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return std::nullopt;
  if (!nvml_) nvml_.emplace(Nvml::load(library_));
  return Turn{std::move(lock), *nvml_};
}

Result<unsigned> gpu_of(const std::vector<GpuSnapshot>& gpus, pid_t pid, const std::string& visible) {
  if (gpus.empty()) return Error{.message = "the driver knows no GPU"};
  for (unsigned i = 0; i < gpus.size(); ++i) {
    const auto& pids = gpus[i].pids;
    if (std::find(pids.begin(), pids.end(), static_cast<unsigned>(pid)) != pids.end()) return i;
  }
  if (gpus.size() == 1) return 0U;
  unsigned first = 0;
  const auto [end, code] = std::from_chars(visible.data(), visible.data() + visible.size(), first);
  const bool number = code == std::errc() && (end == visible.data() + visible.size() || *end == ',');
  if (number && first < gpus.size()) return first;
  return Error{.message =
                   fmt::format("cannot determine which of {} GPUs it computes on: set CUDA_VISIBLE_DEVICES "
                               "to a number",
                               gpus.size())};
}

Sensor gpu_sensor(std::shared_ptr<GpuLibrary> library, pid_t pid, const std::string& visible) {
  Sensor sensor{.least_ns = kTenth};
  for (const Named& one : kNamed) sensor.names.emplace_back(one.name);
  for (const ThrottleReason& reason : kThrottleReasons)
    sensor.names.push_back(fmt::format("gpu_throttled: {}", reason.name));
  sensor.read = [library = std::move(library), pid, visible,
                 index = std::optional<unsigned>()](std::span<Reading> out) mutable {
    const auto nothing = [&](const std::string& why) {
      std::fill(out.begin(), out.end(), Reading::absent(why));
    };
    const auto turn = library->turn();
    if (!turn) return nothing("the driver does not answer");
    const Result<Nvml>& nvml = turn->nvml;
    if (!nvml) return nothing(nvml.error().message);
    if (!index) {
      const auto found = gpu_of(nvml->take(), pid, visible);
      if (!found) return nothing(found.error().message);
      index = *found;
    }
    fill(nvml->take(*index), out);
  };
  return sensor;
}

}  // namespace bakeoff::sample
