// Numbers of use come from many sensors, and any of them may be absent in some bursts: a container without
// counters, a GPU that is asked ten times a second. A burst that lacks a number is left out with its steps
// and its time, so that every ratio is over the bursts in which the number was seen. Warm-up bursts never
// count, as compilation would dominate them. Means are weighted by time: bursts of one contender are of
// different lengths.

#include "evidence/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "evidence/invariants.h"
#include "sample/perf_counters.h"

namespace bakeoff {
namespace {

// The sums of a number and of its denominator, over the bursts that have the number.
struct Sums {
  double used = 0, steps = 0, wall_s = 0;
};

std::optional<Sums> sums_of(const std::vector<const Trial*>& trials, const std::string& name) {
  Sums sums;
  for (const Trial* trial : trials) {
    for (size_t i = static_cast<size_t>(trial->warmup_bursts); i < trial->bursts.size(); ++i) {
      const Burst& burst = trial->bursts[i];
      const auto found = burst.used.find(name), wall = burst.used.find("wall_s");
      if (found == burst.used.end() || wall == burst.used.end()) continue;
      sums.used += found->second;
      sums.steps += static_cast<double>(burst.steps);
      sums.wall_s += wall->second;
    }
  }
  return sums.steps > 0 && sums.wall_s > 0 ? std::optional(sums) : std::nullopt;
}

// Calls `act` with the value and the wall seconds of every burst that counts and has the number.
template <typename Act>
void each_burst(const std::vector<const Trial*>& trials, const std::string& name, Act act) {
  for (const Trial* trial : trials) {
    for (size_t i = static_cast<size_t>(trial->warmup_bursts); i < trial->bursts.size(); ++i) {
      const auto& used = trial->bursts[i].used;
      const auto found = used.find(name), wall = used.find("wall_s");
      if (found != used.end() && wall != used.end()) act(found->second, wall->second);
    }
  }
}

std::optional<double> highest(const std::vector<const Trial*>& trials, const std::string& name) {
  std::optional<double> most;
  each_burst(trials, name, [&](double value, double) { most = std::max(most.value_or(value), value); });
  return most;
}

// Mean weighted by time.
std::optional<double> mean(const std::vector<const Trial*>& trials, const std::string& name) {
  double sum = 0, wall = 0;
  each_burst(trials, name, [&](double value, double s) { sum += value * s, wall += s; });
  return wall > 0 ? std::optional(sum / wall) : std::nullopt;
}

std::string in_words(const std::string& name) {
  if (name == "energy_j") return "energy";
  if (name == "rss_bytes" || name == "pss_bytes") return "resident memory";
  if (name == "allocator_peak_bytes") return "the framework's own memory count";
  if (name == "temperature_c") return "temperature";
  if (name == "run_queue") return "run queue";
  if (name.starts_with("gpu_")) return "GPU";
  if (std::find(sample::kPerfNames.begin(), sample::kPerfNames.end(), name) != sample::kPerfNames.end())
    return "performance counters";
  if (name == "cpu_s") return "processor time";
  if (name == "wait_s") return "waiting for a processor";
  return name.ends_with("faults") ? "page faults" : name.ends_with("switches") ? "context switches" : name;
}

std::optional<double> per_step(const std::optional<Sums>& sums) {
  return sums ? std::optional(sums->used / sums->steps) : std::nullopt;
}

}  // namespace

std::optional<Broken> gpu_energy_against_power(const std::vector<const Trial*>& trials) {
  const auto energy = sums_of(trials, "gpu_energy_j");
  const auto power = mean(trials, "gpu_power_w");
  if (!energy || !power) return std::nullopt;
  return check_energy(energy->used, *power, energy->wall_s);
}

Usage usage_of(const std::vector<const Trial*>& trials) {
  const auto cpu = sums_of(trials, "cpu_s"), wait = sums_of(trials, "wait_s");
  const auto instructions = sums_of(trials, "instructions"), cycles = sums_of(trials, "cycles");
  Usage usage{.faults = per_step(sums_of(trials, "minor_faults")),
              .major_faults = per_step(sums_of(trials, "major_faults")),
              .joules = per_step(sums_of(trials, "energy_j")),
              .instructions = per_step(instructions),
              .cache_misses = per_step(sums_of(trials, "cache_misses")),
              .branch_misses = per_step(sums_of(trials, "branch_misses")),
              .temperature_c = highest(trials, "temperature_c")};
  if (cpu) usage.cores = cpu->used / cpu->wall_s;
  if (cpu && wait && cpu->used + wait->used > 0) usage.waiting = wait->used / (cpu->used + wait->used);
  if (instructions && cycles && cycles->used > 0) usage.per_cycle = instructions->used / cycles->used;
  const auto voluntary = per_step(sums_of(trials, "voluntary_switches"));
  const auto involuntary = per_step(sums_of(trials, "involuntary_switches"));
  if (voluntary && involuntary) usage.switches = *voluntary + *involuntary;
  return usage;
}

MemoryUse memory_of(const std::vector<const Trial*>& trials, int64_t batch) {
  MemoryUse memory{.in_bursts = highest(trials, "rss_bytes")};
  const auto raise = [](std::optional<double>& to, double value) {
    to = std::max(to.value_or(value), value);
  };
  const double rows = static_cast<double>(std::max<int64_t>(batch, 1));
  for (const Trial* trial : trials) {
    const auto of = [&](const char* name) {
      const auto found = trial->memory.find(name);
      return found == trial->memory.end() ? std::nullopt : std::optional(found->second);
    };
    const auto allocator = of("allocator_peak_bytes"), built = of("built_rss_bytes");
    if (const auto pss = of("pss_bytes")) raise(memory.pss, *pss);
    if (allocator) raise(memory.allocator_peak, *allocator);
    const auto bursts = highest({trial}, "rss_bytes");
    if (of("on_gpu")) {
      if (allocator) raise(memory.per_sample, *allocator / rows);
    } else if (built && bursts && *bursts > *built) {
      raise(memory.per_sample, (*bursts - *built) / rows);
    }
  }
  return memory;
}

GpuUse gpu_use_of(const std::vector<const Trial*>& trials) {
  return {
      .on_gpu = std::any_of(trials.begin(), trials.end(),
                            [](const Trial* trial) { return trial->memory.contains("on_gpu"); }),
      .busy = mean(trials, "gpu_busy"),
      .power_w = mean(trials, "gpu_power_w"),
      .sm_clock_hz = mean(trials, "gpu_sm_clock_hz"),
      .joules = gpu_energy_against_power(trials) ? std::nullopt : per_step(sums_of(trials, "gpu_energy_j")),
      .memory_bytes = highest(trials, "gpu_memory_bytes"),
      .temperature_c = highest(trials, "gpu_temperature_c"),
      .processes = highest(trials, "gpu_processes"),
      .throttled = mean(trials, "gpu_throttled")};
}

EpochCost epoch_cost(double ms_per_step, int64_t rows, int64_t batch, const Usage& usage, const GpuUse& gpu,
                     const recipe::Cost& cost) {
  if (!(ms_per_step > 0) || !std::isfinite(ms_per_step) || batch <= 0) return {};
  std::optional<double> joules = usage.joules;  // a step
  if (gpu != GpuUse{}) joules = gpu.joules ? std::optional(*gpu.joules + joules.value_or(0)) : std::nullopt;
  EpochCost epoch;
  const auto samples = static_cast<double>(batch);
  const double step_price = ms_per_step / 3.6e6 * cost.per_hour;
  if (joules && *joules > 0) epoch.samples_per_joule = samples / *joules;
  if (step_price > 0) epoch.samples_per_unit = samples / step_price;
  if (rows <= 0) return epoch;
  const double steps = static_cast<double>(rows) / samples;
  epoch.seconds = steps * ms_per_step / 1e3;
  if (step_price > 0) epoch.price = steps * step_price;
  if (joules) epoch.joules = steps * *joules;
  if (epoch.joules && cost.grams_per_kwh > 0) epoch.grams_co2 = *epoch.joules / 3.6e6 * cost.grams_per_kwh;
  return epoch;
}

std::vector<std::string> never_sampled(const std::vector<Trial>& trials) {
  std::set<std::string> seen;
  Texts absent;
  for (const Trial& trial : trials) {
    for (const Burst& burst : trial.bursts) {
      for (const auto& [name, value] : burst.used) seen.insert(name);
    }
    absent.insert(trial.not_sampled.begin(), trial.not_sampled.end());
  }
  std::vector<std::string> never;
  for (const auto& [name, why] : absent) {
    const std::string line = fmt::format("{}: {}", in_words(name), why);
    if (!seen.contains(name) && std::find(never.begin(), never.end(), line) == never.end())
      never.push_back(line);
  }
  return never;
}

}  // namespace bakeoff
