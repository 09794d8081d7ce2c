#pragma once

// What a worker's process used during a burst, and what that comes to for a contender. Taken from outside,
// while the worker is frozen: nothing samples while it computes.
//
//   const UsageMark before = mark_usage(pid);
//   ... a burst ...
//   burst.used = usage_between(before, mark_usage(pid), trial.not_sampled);
//
// | name                 | unit | what                                                                     |
// |----------------------|------|--------------------------------------------------------------------------|
// | wall_s               | s    | between the two marks: the burst, its request, a look at what follows it |
// | cpu_s                | s    | processor time of all threads                                            |
// | wait_s               | s    | threads were runnable, but no processor was free                         |
// | minor_faults         |      | pages of memory that were set up                                         |
// | major_faults         |      | pages that came from a disk                                              |
// | voluntary_switches   |      | threads that waited for something                                        |
// | involuntary_switches |      | threads that were pushed off a processor                                 |
// | energy_j             | J    | the processors' packages and memory, all work on them included           |
// | instructions, cycles, cache_misses, branch_misses | | outside the kernel (sample/perf_counters.h)    |
//
// More is sampled during bursts: lab/sensing.h.

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/invariants.h"
#include "lab/trial.h"
#include "recipe/recipe.h"
#include "sample/energy.h"
#include "sample/perf_counters.h"
#include "sample/process_sampler.h"

namespace bakeoff::lab {

struct UsageMark {
  int64_t ns = 0;       // monotonic, before the readings
  int64_t read_ns = 0;  // once processor time was read: on a busy machine that can take a while
  sample::Reading cpu_s = {};
  sample::ProcessSnapshot process = {};
  sample::EnergySnapshot energy = {};
  sample::PerfSnapshot perf = {};  // left empty by mark_usage(): the counters are the caller's
};

// `root`: where /proc and /sys are; processor time always comes from the kernel itself.
UsageMark mark_usage(pid_t pid, const std::filesystem::path& root = "/");

// By name; wall_s is the longest that processor time can have come from. What is absent, or went backwards (a
// thread ended), is left out, with its reason in `absent`.
std::map<std::string, double> usage_between(const UsageMark& before, const UsageMark& after, Texts& absent);

// Seconds of processor time of a process, its descendants (workers of a DataLoader), and those of them that
// ended; of the descendants in the kernel's ticks, from <root>/proc/<pid>/stat. What cannot be read adds
// nothing.
double tree_cpu_s(pid_t pid, const std::filesystem::path& root = "/");

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

}  // namespace bakeoff::lab
