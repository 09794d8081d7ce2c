#pragma once

// What the workers of a contender used, over all bursts of its sound trials that count: processors, memory,
// energy, GPU. Of the numbers that are taken around each burst (race/usage_marks.h) and during it
// (race/sensing.h).

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evidence/invariants.h"
#include "recipe/recipe.h"
#include "records/trial.h"

namespace bakeoff {

// A contender's, over all bursts of its sound trials that count. Without the numbers: empty.
struct Usage {
  std::optional<double> cores = {};         // processors busy on the mean
  std::optional<double> waiting = {};       // of the time in which its threads wanted a processor: had none
  std::optional<double> faults = {};        // page faults a step, minor ones
  std::optional<double> major_faults = {};  // page faults a step that waited for a disk
  std::optional<double> switches = {};      // context switches a step, both kinds
  std::optional<double> joules = {};        // a step
  std::optional<double> instructions = {};  // a step, outside the kernel, as are the following
  std::optional<double> per_cycle = {};     // instructions
  std::optional<double> cache_misses = {};
  std::optional<double> branch_misses = {};
  std::optional<double> temperature_c = {};  // of the processors, the highest
  bool operator==(const Usage&) const = default;
};
Usage usage_of(const std::vector<const Trial*>& trials);

// Of its memory, the largest over those trials.
struct MemoryUse {
  std::optional<double> in_bursts = {};       // resident, the most that was seen while it was timed
  std::optional<double> pss = {};             // after the last burst, shared pages divided
  std::optional<double> allocator_peak = {};  // the framework's own count, where it keeps one
  // Growth from the model as built, with weights and data, to the bursts: gradients, optimizer state,
  // activations, workspaces and compiled code, over the rows of a batch. On a GPU the allocator's peak over
  // them, weights included.
  std::optional<double> per_sample = {};
  bool operator==(const MemoryUse&) const = default;
};
MemoryUse memory_of(const std::vector<const Trial*>& trials, int64_t batch);

// Of a GPU, where it computes on one: means over the bursts that count, the memory as the highest.
struct GpuUse {
  bool on_gpu = false;              // it does, whether or not anything of the GPU can be read
  std::optional<double> busy = {};  // share of the time
  std::optional<double> power_w = {}, sm_clock_hz = {};
  std::optional<double> joules = {};  // a step, of the board
  std::optional<double> memory_bytes = {}, temperature_c = {}, processes = {};
  std::optional<double> throttled = {};  // share of the looks at which its clocks were held down
  bool operator==(const GpuUse&) const = default;
};
GpuUse gpu_use_of(const std::vector<const Trial*>& trials);
// Its energy counter against its mean power x time, over all bursts that have both: where they disagree the
// energy is left out.
std::optional<Broken> gpu_energy_against_power(const std::vector<const Trial*>& trials);

// What a reader of its row should know of how it was measured: a GPU that was held back or went away in
// mid-run, others on it, energy that does not go with power, memory at its cgroup's limit. In words.
std::vector<std::string> remarks_on(const std::vector<const Trial*>& trials);

// What an epoch costs at the steady rate, start-up and first steps left out. Empty where it cannot be told.
struct EpochCost {
  std::optional<double> seconds = {};
  std::optional<double> price = {};      // in the recipe's currency
  std::optional<double> joules = {};     // of the processors' packages and memory, and of its GPU's board
  std::optional<double> grams_co2 = {};  // of that energy
  // Whatever an epoch is: where energy is measured, and where the recipe has a price.
  std::optional<double> samples_per_joule = {}, samples_per_unit = {};
  bool operator==(const EpochCost&) const = default;
};
// rows: samples of an epoch, the last batch perhaps a part; 0: not known. Of a contender on a GPU energy is
// absent unless that of the board is known.
EpochCost epoch_cost(double ms_per_step, int64_t rows, int64_t batch, const Usage& usage, const GpuUse& gpu,
                     const recipe::Cost& cost);

// "energy: there is no /sys/class/powercap", ...: what no trial has, once each, in words.
std::vector<std::string> never_sampled(const std::vector<Trial>& trials);

}  // namespace bakeoff
