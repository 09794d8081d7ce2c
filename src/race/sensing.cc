#include "race/sensing.h"

#include <algorithm>
#include <cstdlib>

#include "sample/memory.h"
#include "sample/temperature.h"

namespace bakeoff {
namespace {

constexpr int64_t kMs = 1'000'000;

bool of_highest(const std::string& name) {
  return name == "rss_bytes" || name.ends_with("temperature_c") || name == "gpu_memory_bytes" ||
         name == "gpu_processes";
}

// "cpu" and "cpu:0" are not GPUs.
bool computes_on_gpu(const Trial& trial) {
  const auto device = trial.effective.find("device");
  return device != trial.effective.end() && !device->second.empty() && !device->second.starts_with("cpu");
}

}  // namespace

std::map<std::string, double> used_of(const std::map<std::string, sample::Series>& all, double wall_s,
                                      Texts& absent) {
  std::map<std::string, double> used;
  for (const auto& [name, series] : all) {
    if (!series.absent.empty()) absent[name] = series.absent;
    if (series.count == 0) continue;
    if (name != "gpu_energy_j") {
      used[name] = of_highest(name) ? series.high : series.mean();
      continue;
    }
    // Its first and last samples lie within the burst; their difference is scaled to the whole burst.
    const double joules = series.last - series.first;
    const auto seconds = static_cast<double>(series.last_ns - series.first_ns) / 1e9;
    if (joules >= 0 && seconds > 0)
      used[name] = joules / seconds * wall_s;
    else
      absent[name] = joules < 0 ? "the energy counter went backwards: the driver was loaded again"
                                : "the burst was too short for two samples";
  }
  return used;
}

Sensing::Sensing(const SensingOptions& options)
    : options_(options),
      sampler_({.period_ns = std::max<int64_t>(options.sample_ms, 1) * kMs,
                .patience_ns = options.patience_ms * kMs}),
      gpus_(std::make_shared<sample::GpuLibrary>(options.gpu_library)) {
  if (options_.sample_ms <= 0) return;
  of_machine_ = {sampler_.add(sample::run_queue_sensor(options.root)),
                 sampler_.add(sample::temperature_sensor(options.root))};
}

WorkerSensors Sensing::attach(pid_t pid) {
  WorkerSensors sensors{.pid = pid, .processes = {pid}, .perf = sample::PerfCounters::attach(pid)};
  if (options_.sample_ms <= 0) return sensors;
  sensors.sampled = of_machine_;
  sensors.sampled.push_back(sampler_.add(sample::rss_sensor(pid, options_.root)));
  return sensors;
}

void Sensing::add_ranks(WorkerSensors& sensors, const std::vector<pid_t>& processes) {
  if (processes == sensors.processes) return;
  sensors.processes = processes;
  if (options_.sample_ms > 0)
    sensors.sampled.back() = sampler_.add(sample::rss_sensor(processes, options_.root));
}

void Sensing::add_device(WorkerSensors& sensors, const Texts& variables, Trial& trial) {
  if (!computes_on_gpu(trial)) return;
  trial.memory["on_gpu"] = 1;
  if (options_.sample_ms <= 0) return;
  const auto stated = variables.find("CUDA_VISIBLE_DEVICES");
  const char* inherited = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string visible = stated != variables.end() ? stated->second
                              : inherited != nullptr    ? inherited
                                                        : "";
  sensors.sampled.push_back(sampler_.add(sample::gpu_sensor(gpus_, sensors.pid, visible)));
}

void Sensing::warm_up(const WorkerSensors& sensors) {
  if (options_.sample_ms <= 0) return;
  sampler_.begin(sensors.sampled);
}

UsageMark Sensing::begin(const WorkerSensors& sensors) {
  UsageMark mark = mark_usage(sensors.pid, options_.root);
  mark.perf = sensors.perf.take();
  if (options_.sample_ms > 0) sampler_.begin(sensors.sampled);
  return mark;
}

std::map<std::string, double> Sensing::end(const WorkerSensors& sensors, const UsageMark& before,
                                           Trial& trial) {
  std::map<std::string, sample::Series> series;
  if (options_.sample_ms > 0) series = sampler_.end();
  UsageMark after = mark_usage(sensors.pid, options_.root);
  after.perf = sensors.perf.take();
  Texts absent;
  auto used = usage_between(before, after, absent);
  used.merge(used_of(series, used.at("wall_s"), absent));
  // A burst may end before the sampler gets a processor; resident memory can still be read afterwards.
  if (const auto still = sample::sample_memory(sensors.processes, options_.root, false).rss_bytes) {
    double& most = used.try_emplace("rss_bytes", *still).first->second;
    most = std::max(most, *still);
  }
  for (const auto& [name, why] : absent) {
    trial.not_sampled[name] = why;
    const bool had = std::any_of(trial.bursts.begin(), trial.bursts.end(),
                                 [&](const Burst& burst) { return burst.used.contains(name); });
    if (had || used.contains(name)) trial.sensors_lost.try_emplace(name, why);
  }
  return used;
}

void take_built_memory(const Worker& worker, const std::filesystem::path& root, Trial& trial) {
  const auto memory = sample::sample_memory(worker.processes(), root, /*with_pss=*/false);
  if (memory.rss_bytes) trial.memory["built_rss_bytes"] = *memory.rss_bytes;
}

void take_memory(Worker& worker, const std::filesystem::path& root, Trial& trial) {
  const sample::ProcessMemory seen = sample::sample_memory(worker.processes(), root);
  if (seen.pss_bytes)
    trial.memory["pss_bytes"] = *seen.pss_bytes;
  else
    trial.not_sampled["pss_bytes"] = seen.pss_bytes.reason();
  worker.thaw();
  const WorkerMemory own = worker.memory();
  worker.freeze();
  if (own.allocator_peak_bytes)
    trial.memory["allocator_peak_bytes"] = *own.allocator_peak_bytes;
  else
    trial.not_sampled["allocator_peak_bytes"] = own.allocator_absent;
}

void take_transfer(Worker& worker, Trial& trial) {
  if (!computes_on_gpu(trial)) return;
  worker.thaw();
  trial.transfer = worker.transfer();
  worker.freeze();
}

}  // namespace bakeoff
