#pragma once

// From a recipe to a run directory: data, initial weights, emitted scripts, the manifest, and a lane for
// every contender.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/progress.h"
#include "base/result.h"
#include "plan/lane.h"
#include "recipe/recipe.h"
#include "records/records.h"
#include "records/trial.h"
#include "roofline/limits.h"
#include "sample/host_probe.h"

namespace bakeoff {

struct Plan {
  recipe::Recipe recipe = {};
  RunDirectory directory;
  Manifest manifest = {};
  GateJob gate = {};
  std::vector<Lane> lanes = {};  // in the recipe's order
  // Measures the limits of these CPUs if the run has no machine report; empty: roofline::measure_bounds.
  std::function<roofline::Limits(const std::vector<int>& cpus)> measure_peak = {};
  sample::HostProbe host = {};          // reads the host around every round; empty: this machine
  std::filesystem::path sensors = "/";  // folder that contains the /proc and /sys of evidence/usage.h
  std::filesystem::path gpu_library = "libnvidia-ml.so.1";  // the driver's library, for race/sensing.h
  std::string gpu_clock = {};  // result of locking the GPU clocks (machine/clock_keeper.h); empty: not done
  // When the command that the budget is of began (monotonic clock).
  int64_t begin_ns = monotonic_clock().now_ns();
  double studies_s = 0;               // of the budget, kept for the studies after the race
  std::filesystem::path proofs = {};  // proofs of earlier runs (gate/proofs.h); empty: none are reused
};

// Seconds until the budget is spent but for what is kept for studies, counted from plan.begin_ns; infinite where heats alone are limited.
double left_s(const Plan& plan);

// Writes scripts, data.safetensors and weights.safetensors into `folder`. Each script then runs alone.
Status write_scripts(const recipe::Recipe& recipe, const std::filesystem::path& folder,
                     const Progress& progress);

// Creates a run in an empty or new folder. `calibration`: what the recipe takes from the machine's profile,
// for the record. A control that the container refuses is noted in the manifest; it is an error if the
// recipe states it.
Result<Plan> make_plan(const recipe::Recipe& recipe, const std::filesystem::path& folder,
                       const Interpreters& interpreters, const Progress& progress,
                       const Texts& calibration = {});
// Reopens an interrupted run with its own recipe, scripts, data and weights. Error: its data, or a text
// that rows are held out of, has changed (plan/data_digests.h).
Result<Plan> reopen_plan(const std::filesystem::path& folder, const Interpreters& interpreters);

// A contender of the plan, by index, at another batch: its script is emitted again next to the others, and
// compiled if it is a program. The lane has a failure if that is impossible or the script is the user's own.
Lane lane_at_batch(const Plan& plan, size_t lane, int64_t batch, const Progress& progress);

// Replaces parts of the recipe by what the record holds: contenders, the published table, and values taken
// from the machine's profile (number of bursts, promise about noise).
void take_recorded(const Manifest& manifest, recipe::Recipe& recipe);

// Variables set for every worker, independent of its controls: quiet logs; no TF32 in the equalised track.
Texts worker_environment(const recipe::Recipe& recipe);

}  // namespace bakeoff
