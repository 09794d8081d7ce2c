#include "sample/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/clock.h"
#include "base/texts.h"

namespace bakeoff::sample {
namespace {

using Device = void*;

constexpr int kSuccess = 0, kInsufficientSize = 7;
constexpr int kSmClock = 1, kMemoryClock = 2, kGpuTemperature = 0;

struct Utilization {
  unsigned gpu = 0, memory = 0;  // percent
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};
struct Process {
  unsigned pid = 0;
  unsigned long long memory = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};

}  // namespace

// Null where the driver is too old to have it, but the first five.
struct Nvml::Calls {
  void* library = nullptr;
  bool ready = false;  // init() succeeded
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;               // mW
  int (*energy)(Device, unsigned long long*) = nullptr;    // mJ
  int (*clock)(Device, int, unsigned*) = nullptr;          // MHz
  int (*temperature)(Device, int, unsigned*) = nullptr;    // degrees
  int (*throttle)(Device, unsigned long long*) = nullptr;  // bits
  int (*processes)(Device, unsigned*, Process*) = nullptr;
  int (*lock)(Device, unsigned, unsigned) = nullptr;  // MHz, least and most
  int (*reset)(Device) = nullptr;

  ~Calls() {
    if (ready && shutdown != nullptr) shutdown();
    if (library != nullptr) ::dlclose(library);
  }

  template <typename Function>
  void find(Function& to, const char* symbol) {
    to = reinterpret_cast<Function>(::dlsym(library, symbol));
  }

  std::string reason(int code) const {
    const char* text = error_string(code);
    return text != nullptr ? text : fmt::format("error {}", code);
  }
};

namespace {

// The value that `call` writes through its last argument, or why it is absent.
template <typename Value, typename Calls, typename Function, typename... Args>
Result<Value> ask(const Calls& calls, const char* what, Function function, Args... args) {
  if (function == nullptr)
    return Error{.message = fmt::format("the driver is too old to report its {}", what)};
  Value value{};
  const int code = function(args..., &value);
  if (code != kSuccess) return Error{.message = fmt::format("{}: {}", what, calls.reason(code))};
  return value;
}

template <typename Value, typename Get>
Reading reading(const Result<Value>& value, Get get) {
  return value ? Reading(static_cast<double>(get(*value))) : Reading::absent(value.error().message);
}

Reading scaled(const Result<unsigned>& value, double scale) {
  return reading(value, [&](unsigned v) { return v * scale; });
}

// A list that has no room gives the number of those there are all the same.
template <typename Calls>
Reading processes_on(const Calls& c, Device device, std::vector<unsigned>& pids) {
  if (c.processes == nullptr) return Reading::absent("the driver is too old to report its processes");
  std::array<Process, 64> list{};
  unsigned count = list.size();
  const int code = c.processes(device, &count, list.data());
  if (code != kSuccess && code != kInsufficientSize) return Reading::absent("processes: " + c.reason(code));
  for (size_t i = 0; code == kSuccess && i < count && i < list.size(); ++i) pids.push_back(list[i].pid);
  return static_cast<double>(count);
}

template <typename Calls>
void read_throttling(const Calls& c, Device device, GpuSnapshot& gpu) {
  const auto bits = ask<unsigned long long>(c, "throttling", c.throttle, device);
  std::vector<std::string> why;
  for (const ThrottleReason& reason : kThrottleReasons) {
    if (!bits || (*bits & reason.bit) == 0) continue;
    why.emplace_back(reason.name);
    gpu.throttle_bits |= reason.bit;
  }
  gpu.why_throttled = join(why, ", ");
  gpu.throttled = reading(bits, [&](unsigned long long) { return why.empty() ? 0 : 1; });
}

template <typename Calls>
void look_at(const Calls& c, Device device, GpuSnapshot& gpu) {
  std::array<char, 96> name{};
  if (c.name != nullptr && c.name(device, name.data(), name.size() - 1) == kSuccess) gpu.name = name.data();
  gpu.busy = reading(ask<Utilization>(c, "utilisation", c.utilization, device),
                     [](const Utilization& u) { return u.gpu / 100.0; });
  const auto memory = ask<Memory>(c, "memory", c.memory, device);
  gpu.memory_bytes = reading(memory, [](const Memory& m) { return m.used; });
  gpu.memory_total_bytes = reading(memory, [](const Memory& m) { return m.total; });
  gpu.power_w = scaled(ask<unsigned>(c, "power", c.power, device), 1e-3);
  gpu.energy_j = reading(ask<unsigned long long>(c, "energy", c.energy, device),
                         [](unsigned long long mj) { return static_cast<double>(mj) / 1e3; });
  gpu.sm_clock_hz = scaled(ask<unsigned>(c, "clock", c.clock, device, kSmClock), 1e6);
  gpu.memory_clock_hz = scaled(ask<unsigned>(c, "memory clock", c.clock, device, kMemoryClock), 1e6);
  gpu.temperature_c = scaled(ask<unsigned>(c, "temperature", c.temperature, device, kGpuTemperature), 1);
  gpu.processes = processes_on(c, device, gpu.pids);
  read_throttling(c, device, gpu);
}

// Changes a setting of a device.
template <typename Calls, typename Function, typename... Args>
Status change(const Calls& c, unsigned index, Function function, Args... args) {
  if (function == nullptr) return Error{"the driver is too old for that"};
  Device device = nullptr;
  int code = c.handle(index, &device);
  if (code == kSuccess) code = function(device, args...);
  if (code != kSuccess) return Error{c.reason(code)};
  return Done{};
}

void nothing_of(GpuSnapshot& gpu, const std::string& why) {
  for (Reading* r :
       {&gpu.busy, &gpu.memory_bytes, &gpu.memory_total_bytes, &gpu.power_w, &gpu.energy_j, &gpu.sm_clock_hz,
        &gpu.memory_clock_hz, &gpu.temperature_c, &gpu.processes, &gpu.throttled})
    *r = Reading::absent(why);
}

}  // namespace

Nvml::Nvml(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;

Result<Nvml> Nvml::load(const std::filesystem::path& library) {
  auto calls = std::make_unique<Calls>();
  Calls& c = *calls;
  c.library = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (c.library == nullptr) {
    const char* why = ::dlerror();
    return Error{.message = why != nullptr ? why : "it cannot be loaded"};
  }
  c.find(c.init, "nvmlInit_v2");
  c.find(c.shutdown, "nvmlShutdown");
  c.find(c.error_string, "nvmlErrorString");
  c.find(c.count, "nvmlDeviceGetCount_v2");
  c.find(c.handle, "nvmlDeviceGetHandleByIndex_v2");
  if (c.init == nullptr || c.shutdown == nullptr || c.error_string == nullptr || c.count == nullptr ||
      c.handle == nullptr) {
    return Error{.message = fmt::format("{} is no management library of NVIDIA", library.string())};
  }
  c.find(c.name, "nvmlDeviceGetName");
  c.find(c.utilization, "nvmlDeviceGetUtilizationRates");
  c.find(c.memory, "nvmlDeviceGetMemoryInfo");
  c.find(c.power, "nvmlDeviceGetPowerUsage");
  c.find(c.energy, "nvmlDeviceGetTotalEnergyConsumption");
  c.find(c.clock, "nvmlDeviceGetClockInfo");
  c.find(c.temperature, "nvmlDeviceGetTemperature");
  c.find(c.throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  c.find(c.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  c.find(c.lock, "nvmlDeviceSetGpuLockedClocks");
  c.find(c.reset, "nvmlDeviceResetGpuLockedClocks");
  if (const int code = c.init(); code != kSuccess) return Error{.message = c.reason(code)};
  c.ready = true;
  return Nvml(std::move(calls));
}

unsigned Nvml::count() const {
  unsigned count = 0;
  return calls_->count(&count) == kSuccess ? count : 0;
}

std::vector<GpuSnapshot> Nvml::take() const {
  std::vector<GpuSnapshot> all;
  const unsigned devices = count();
  for (unsigned index = 0; index < devices; ++index) all.push_back(take(index));
  return all;
}

Status Nvml::lock_clock(unsigned index, unsigned mhz) const {
  return change(*calls_, index, calls_->lock, mhz, mhz);
}

Status Nvml::reset_clock(unsigned index) const { return change(*calls_, index, calls_->reset); }

GpuSnapshot Nvml::take(unsigned index) const {
  const Calls& c = *calls_;
  GpuSnapshot gpu;
  gpu.ns = monotonic_clock().now_ns();
  Device device = nullptr;
  const int code = c.handle(index, &device);
  if (code == kSuccess)
    look_at(c, device, gpu);
  else
    nothing_of(gpu, c.reason(code));
  return gpu;
}

}  // namespace bakeoff::sample
