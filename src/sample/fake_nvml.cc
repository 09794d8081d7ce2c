// A management library of NVIDIA that the tests load in place of the driver's. Its two devices are the
// numbers in the environment variable FAKE_NVML, "key=value" with spaces between, read at every call;
// "@FILE": those in that file, for tests with threads.
//   init=9        nvmlInit fails with that code
//   init_hang=1   nvmlInit does not return while this is there; "init" is appended to FAKE_NVML_CLOCKS
//   lost=1        this device is gone
//   hang=1        no question about a device is answered while this is there
//   pid=4711      of each process
//   <number>      energy=5000, power=300000, throttle=36, processes=3, ...: as nvml.h counts them
//   may_lock=4    locking clocks fails with that code
// Clocks that are locked and reset are appended to the file FAKE_NVML_CLOCKS. A number that is not given is
// "not supported".

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kInsufficientSize = 7, kLost = 15;

std::string numbers() {
  const char* all = std::getenv("FAKE_NVML");
  if (all == nullptr || all[0] != '@') return all != nullptr ? all : "";
  std::ifstream file(all + 1);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool given(const std::string& key, unsigned long long& value) {
  const std::string text = " " + numbers();
  const size_t at = text.find(" " + key + "=");
  if (at == std::string::npos) return false;
  value = std::strtoull(text.c_str() + at + key.size() + 2, nullptr, 10);
  return true;
}

template <typename T>
int number(const char* key, T* to) {
  unsigned long long value = 0;
  if (!given(key, value)) return kNotSupported;
  *to = static_cast<T>(value);
  return kSuccess;
}

int devices[2];

void write_line(const std::string& line) {
  if (const char* file = std::getenv("FAKE_NVML_CLOCKS")) std::ofstream(file, std::ios::app) << line << "\n";
}

int write_clocks(const void* device, const std::string& what) {
  write_line((device == &devices[0] ? "0: " : "1: ") + what);
  return kSuccess;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int nvmlInit_v2() {
  unsigned long long code = 0, hang = 0;
  if (given("init_hang", hang)) write_line("init");
  while (given("init_hang", hang)) ::usleep(1000);
  return given("init", code) ? static_cast<int>(code) : kSuccess;
}
FAKE int nvmlShutdown() { return kSuccess; }
FAKE const char* nvmlErrorString(int code) {
  return code == kNotSupported ? "Not Supported"
         : code == kLost       ? "GPU is lost"
         : code == 4           ? "Insufficient Permissions"
                               : "Driver Not Loaded";
}
FAKE int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}
FAKE int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  unsigned long long lost = 0;
  for (unsigned long long hang = 0; given("hang", hang);) ::usleep(1000);
  if (given("lost", lost) && lost == index) return kLost;
  *device = &devices[index];
  return kSuccess;
}
FAKE int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  std::strncpy(name, device == &devices[0] ? "Fake 100" : "Fake 200", length);
  return kSuccess;
}
FAKE int nvmlDeviceGetUtilizationRates(void*, unsigned* percent) {
  percent[1] = 99;
  return number("busy", percent);
}
FAKE int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 1ULL << 34;
  return number("memory", &memory[2]);
}
FAKE int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) { return number("power", milliwatts); }
FAKE int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* mj) { return number("energy", mj); }
FAKE int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  return number(type == 1 ? "sm" : type == 2 ? "mem" : "other", mhz);
}
FAKE int nvmlDeviceGetTemperature(void*, int sensor, unsigned* degrees) {
  return sensor == 0 ? number("temperature", degrees) : kNotSupported;
}
FAKE int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  return number("throttle", bits);
}
FAKE int nvmlDeviceSetGpuLockedClocks(void* device, unsigned least, unsigned most) {
  unsigned long long code = 0;
  if (given("may_lock", code)) return static_cast<int>(code);
  return write_clocks(device, std::to_string(least) + " to " + std::to_string(most));
}
FAKE int nvmlDeviceResetGpuLockedClocks(void* device) { return write_clocks(device, "reset"); }
// nvmlDeviceGetComputeRunningProcesses_v3 is missing unless FAKE_NVML_NEW is defined: an older driver.
#ifdef FAKE_NVML_NEW
struct RunningProcess {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
FAKE int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void* list) {
  const unsigned room = *count;
  const int code = number("processes", count);
  unsigned long long pid = 1;
  given("pid", pid);
  for (unsigned i = 0; code == kSuccess && i < std::min(*count, room); ++i)
    static_cast<RunningProcess*>(list)[i] = {static_cast<unsigned>(pid) + i, 0, 0, 0};
  return code == kSuccess && *count > room ? kInsufficientSize : code;
}
#endif
