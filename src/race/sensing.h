#pragma once

// Readings around and during a worker's bursts: counters before and after (evidence/usage.h), and in
// between the sensors of sample/sampler.h, read by one thread for a whole heat. The thread sleeps between
// bursts. A sensor that hangs loses only its own numbers.
//
//   Sensing sensing({.root = "/", .sample_ms = 100});
//   WorkerSensors sensors = sensing.attach(pid);        // early: threads that it starts later are counted
//   sensing.add_device(sensors, variables, trial);      // its GPU, if its framework computes on one
//   const UsageMark before = sensing.begin(sensors);
//   ... a burst ...
//   burst.used = sensing.end(sensors, before, trial);
//
// In addition to the names of race/usage_marks.h, a burst's `used` then has these, if they can be read:
//
// clang-format off
// | name          | unit | what                                                                            |
// |---------------|------|---------------------------------------------------------------------------------|
// | rss_bytes     | B    | resident memory, the highest value                                              |
// | run_queue     |      | runnable tasks, mean                                                            |
// | temperature_c | C    | temperature of the processors, the highest value                                |
// | gpu_...       |      | sample/gpu_sensor.h: memory, temperature and processes as highest values,       |
// |               |      | energy of the whole burst, the others as means                                  |
// clang-format on

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evidence/usage.h"
#include "race/usage_marks.h"
#include "records/trial.h"
#include "sample/gpu_sensor.h"
#include "sample/perf_counters.h"
#include "sample/sampler.h"
#include "worker/worker.h"

namespace bakeoff {

// The sensors of one worker. Closing them closes its counters.
struct WorkerSensors {
  pid_t pid = -1;
  std::vector<pid_t> processes = {};  // whose memory is counted
  sample::PerfCounters perf = {};
  std::vector<size_t> sampled = {};  // numbers of its sensors in the sampler
};

struct SensingOptions {
  std::filesystem::path root = "/";  // folder that contains /proc and /sys
  int64_t sample_ms = 100;           // interval; 0: nothing is sampled during bursts
  int64_t patience_ms = 500;         // time after which a sensor that does not answer is abandoned
  std::filesystem::path gpu_library = "libnvidia-ml.so.1";
};

class Sensing {
 public:
  explicit Sensing(const SensingOptions& options);
  // May be called from any thread, like add_device(), but not during a burst.
  WorkerSensors attach(pid_t pid);
  // Adds the device in trial.effective, which the answer to `import` reported. `variables`: the worker's,
  // added to ours.
  void add_device(WorkerSensors& sensors, const Texts& variables, Trial& trial);
  // Counts the memory of all processes of a worker from now on: its own and those of its ranks, known after `import`.
  void add_ranks(WorkerSensors& sensors, const std::vector<pid_t>& processes);
  // Reads the sensors from now until the next begin() and discards the values, so that no driver is loaded
  // during a burst. Returns at once.
  void warm_up(const WorkerSensors& sensors);

  UsageMark begin(const WorkerSensors& sensors);
  // What the burst used. A number that is absent has its reason in trial.not_sampled; if an earlier burst
  // had it, also in trial.sensors_lost.
  std::map<std::string, double> end(const WorkerSensors& sensors, const UsageMark& before, Trial& trial);

 private:
  SensingOptions options_;
  sample::Sampler sampler_;
  std::shared_ptr<sample::GpuLibrary> gpus_;
  std::vector<size_t> of_machine_;  // sensors of the machine, sampled for every worker
};

// The numbers of a burst of `wall_s` seconds from its series of samples; reasons go into `absent`. Pure.
std::map<std::string, double> used_of(const std::map<std::string, sample::Series>& series, double wall_s,
                                      Texts& absent);

// Fill Trial::memory: after the model was built, and after the last burst while the worker is frozen (it is
// woken to report the framework's own count).
void take_built_memory(const Worker& worker, const std::filesystem::path& root, Trial& trial);
void take_memory(Worker& worker, const std::filesystem::path& root, Trial& trial);

// Fills Trial::transfer of a worker that computes on a GPU. It is the worker's last request, so its
// allocations are in no peak.
void take_transfer(Worker& worker, Trial& trial);

}  // namespace bakeoff
