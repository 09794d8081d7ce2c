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

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/trial.h"
#include "recipe/recipe.h"
#include "sample/energy.h"
#include "sample/process_sampler.h"

namespace bakeoff::lab {

struct UsageMark {
  int64_t ns = 0;  // monotonic
  sample::Reading cpu_s = {};
  sample::ProcessSnapshot process = {};
  sample::EnergySnapshot energy = {};
};

// `root`: where /proc and /sys are; processor time always comes from the kernel itself.
UsageMark mark_usage(pid_t pid, const std::filesystem::path& root = "/");

// By name; what is absent, or went backwards (a thread ended), is left out, with its reason in `absent`.
std::map<std::string, double> usage_between(const UsageMark& before, const UsageMark& after, Texts& absent);

// A contender's, over all bursts of its sound trials that count. Without the numbers: empty.
struct Usage {
  std::optional<double> cores = {};         // processors busy on the mean
  std::optional<double> waiting = {};       // of the time in which its threads wanted a processor: had none
  std::optional<double> faults = {};        // page faults a step, minor ones
  std::optional<double> major_faults = {};  // page faults a step that waited for a disk
  std::optional<double> switches = {};      // context switches a step, both kinds
  std::optional<double> joules = {};        // a step
  bool operator==(const Usage&) const = default;
};
Usage usage_of(const std::vector<const Trial*>& trials);

// What an epoch costs at the steady rate, start-up and first steps left out. Empty where it cannot be told.
struct EpochCost {
  std::optional<double> seconds = {};
  std::optional<double> price = {};      // in the recipe's currency
  std::optional<double> joules = {};     // of the processors' packages and memory
  std::optional<double> grams_co2 = {};  // of that energy
  bool operator==(const EpochCost&) const = default;
};
// rows: samples of an epoch, the last batch perhaps a part; 0: not known.
EpochCost epoch_cost(double ms_per_step, int64_t rows, int64_t batch, const Usage& usage,
                     const recipe::Cost& cost);

// "energy: there is no /sys/class/powercap", ...: what no trial has, once each, in words.
std::vector<std::string> never_sampled(const std::vector<Trial>& trials);

}  // namespace bakeoff::lab
