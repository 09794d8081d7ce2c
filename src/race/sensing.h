#pragma once

// What is looked at around and during a worker's bursts: counters before and after (evidence/usage.h), and in
// between, by one thread for a whole heat, the sensors of sample/sampler.h. The thread sleeps from the end of
// a burst to the next one, and a sensor that hangs costs its own numbers only.
//
//   Sensing sensing({.root = "/", .sample_ms = 100});
//   WorkerSensors sensors = sensing.attach(pid);        // as early as possible: its later threads count too
//   sensing.add_device(sensors, variables, trial);      // its GPU, where its framework computes on one
//   const UsageMark before = sensing.begin(sensors);
//   ... a burst ...
//   burst.used = sensing.end(sensors, before, trial);
//
// Besides what evidence/usage.h lists a burst's `used` then has, each where it can be had:
//
// clang-format off
// | name          | unit | what                                                                            |
// |---------------|------|---------------------------------------------------------------------------------|
// | rss_bytes     | B    | resident memory, the most that was seen                                         |
// | run_queue     |      | runnable tasks, mean                                                            |
// | temperature_c | C    | of the processors, the highest                                                  |
// | gpu_...       |      | sample/gpu_sensor.h: memory, temperature and processes as the highest, energy   |
// |               |      | as that of the whole burst, the others as means                                 |
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

// One worker's. Closes its counters with it.
struct WorkerSensors {
  pid_t pid = -1;
  sample::PerfCounters perf = {};
  std::vector<size_t> sampled = {};  // by the sampler's numbers
};

struct SensingOptions {
  std::filesystem::path root = "/";  // below it lie /proc and /sys
  int64_t sample_ms = 100;           // 0: nothing is sampled during bursts
  int64_t patience_ms = 500;
  std::filesystem::path gpu_library = "libnvidia-ml.so.1";
};

class Sensing {
 public:
  explicit Sensing(const SensingOptions& options);
  // From any thread, like add_device(); not during a burst.
  WorkerSensors attach(pid_t pid);
  // By the device in trial.effective, which the answer to `import` gave. `variables`: the worker's, on top of
  // ours.
  void add_device(WorkerSensors& sensors, const Texts& variables, Trial& trial);
  // Looks at what is sampled from now until the next begin(), so that no driver is loaded beside a burst;
  // what is seen counts nowhere. Returns at once.
  void warm_up(const WorkerSensors& sensors);

  UsageMark begin(const WorkerSensors& sensors);
  // What the burst used. What is absent has its reason in trial.not_sampled; what was there in an earlier
  // burst and is not any more, in trial.sensors_lost too.
  std::map<std::string, double> end(const WorkerSensors& sensors, const UsageMark& before, Trial& trial);

 private:
  SensingOptions options_;
  sample::Sampler sampler_;
  std::shared_ptr<sample::GpuLibrary> gpus_;
  std::vector<size_t> of_machine_;  // sampled whoever runs
};

// What a burst of `wall_s` seconds has from its series; reasons as above. Pure.
std::map<std::string, double> used_of(const std::map<std::string, sample::Series>& series, double wall_s,
                                      Texts& absent);

// Fills Trial::memory: after the model was built, and after the last burst, while the worker stands still (it
// is woken for the framework's own count).
void take_built_memory(const Worker& worker, const std::filesystem::path& root, Trial& trial);
void take_memory(Worker& worker, const std::filesystem::path& root, Trial& trial);

// Fills Trial::transfer of one that computes on a GPU: the last thing it is asked for, so that what it
// allocates is in no peak.
void take_transfer(Worker& worker, Trial& trial);

}  // namespace bakeoff
