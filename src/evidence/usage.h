#pragma once

// What the workers of a contender used, over all bursts that count of its sound trials: processors, memory,
// energy, GPU. Computed from numbers taken around each burst (race/usage_marks.h) and during it
// (race/sensing.h).

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evidence/invariants.h"
#include "recipe/recipe.h"
#include "records/trial.h"

namespace bakeoff {

// Processor, memory faults, energy and counters. A number that is not known is empty.
struct Usage {
  std::optional<double> cores = {};          // mean number of busy processors
  std::optional<double> waiting = {};        // share of its threads' runnable time without a free processor
  std::optional<double> faults = {};         // minor page faults per step
  std::optional<double> major_faults = {};   // page faults per step that waited for a disk
  std::optional<double> switches = {};       // context switches per step, voluntary and involuntary
  std::optional<double> joules = {};         // energy per step
  std::optional<double> instructions = {};   // instructions per step, outside the kernel
  std::optional<double> per_cycle = {};      // instructions per cycle, outside the kernel
  std::optional<double> cache_misses = {};   // cache misses per step, outside the kernel
  std::optional<double> branch_misses = {};  // branch misses per step, outside the kernel
  std::optional<double> temperature_c = {};  // highest temperature of the processors
  bool operator==(const Usage&) const = default;
};
Usage usage_of(const std::vector<const Trial*>& trials);

// Memory in bytes, the largest value over those trials.
struct MemoryUse {
  std::optional<double> in_bursts = {};       // highest resident memory during the bursts
  std::optional<double> pss = {};             // after the last burst, shared pages divided among processes
  std::optional<double> allocator_peak = {};  // the framework's own count, if it keeps one
  // Growth from the built model, with weights and data, to the bursts (gradients, optimizer state,
  // activations, workspaces, compiled code), divided by the rows of a batch. On a GPU: the allocator's
  // peak, weights included, divided by the rows of a batch.
  std::optional<double> per_sample = {};
  bool operator==(const MemoryUse&) const = default;
};
MemoryUse memory_of(const std::vector<const Trial*>& trials, int64_t batch);

// Use of a GPU: means over the bursts that count; the memory is the highest value.
struct GpuUse {
  bool on_gpu = false;              // it computes on a GPU, even if no sensor of the GPU can be read
  std::optional<double> busy = {};  // share of the time in which the GPU was busy
  std::optional<double> power_w = {}, sm_clock_hz = {};
  std::optional<double> joules = {};  // energy of the board per step
  std::optional<double> memory_bytes = {}, temperature_c = {}, processes = {};
  std::optional<double> throttled = {};  // share of the samples in which its clocks were reduced
  bool operator==(const GpuUse&) const = default;
};
GpuUse gpu_use_of(const std::vector<const Trial*>& trials);
// The GPU's energy counter compared with its mean power x time, over all bursts that have both. If they
// disagree, the energy is not shown.
std::optional<Broken> gpu_energy_against_power(const std::vector<const Trial*>& trials);

// Remarks on how a row was measured, in words: a GPU that was throttled or disappeared during the run, other
// processes on it, energy that disagrees with power, memory at the limit of its cgroup.
std::vector<std::string> remarks_on(const std::vector<const Trial*>& trials);

// What one epoch costs at the steady step time, without start-up and first steps. Unknown numbers are empty.
struct EpochCost {
  std::optional<double> seconds = {};
  std::optional<double> price = {};      // in the recipe's currency
  std::optional<double> joules = {};     // of the processors' packages and memory, and of its GPU's board
  std::optional<double> grams_co2 = {};  // of that energy
  // Independent of the length of an epoch: if energy is measured, and if the recipe has a price.
  std::optional<double> samples_per_joule = {}, samples_per_unit = {};
  bool operator==(const EpochCost&) const = default;
};
// rows: samples of an epoch, whose last batch may be incomplete; 0: unknown. For a contender on a GPU,
// energy is absent unless that of the board is known.
EpochCost epoch_cost(double ms_per_step, int64_t rows, int64_t batch, const Usage& usage, const GpuUse& gpu,
                     const recipe::Cost& cost);

// Numbers that no trial has, each once, with the reason: "energy: there is no /sys/class/powercap".
std::vector<std::string> never_sampled(const std::vector<Trial>& trials);

}  // namespace bakeoff
