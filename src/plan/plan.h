#pragma once

// From a recipe to a run directory: data, initial weights, emitted scripts, the manifest, and for every
// contender what its worker needs.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "plan/lane.h"
#include "recipe/recipe.h"
#include "records/records.h"
#include "records/trial.h"
#include "roofline/limits.h"
#include "sample/host_eye.h"

namespace bakeoff {

struct Plan {
  recipe::Recipe recipe = {};
  RunDirectory directory;
  Manifest manifest = {};
  GateJob gate = {};
  std::vector<Lane> lanes = {};  // in the recipe's order
  // Limits of these CPUs, where the run has no machine report; empty: roofline::measure_bounds.
  std::function<roofline::Limits(const std::vector<int>& cpus)> measure_peak = {};
  sample::HostEye host = {};            // what is looked at around every round; empty: this machine
  std::filesystem::path sensors = "/";  // below it lie the /proc and /sys of evidence/usage.h
  std::filesystem::path gpu_library =
      "libnvidia-ml.so.1";            // of the driver, for what race/sensing.h asks of GPUs
  std::string gpu_clock = {};         // what was done to it (machine/clock_keeper.h); empty: nothing
  std::filesystem::path proofs = {};  // proofs of earlier runs (gate/proofs.h); empty: prove everything anew
};

// Writes scripts, data.safetensors and weights.safetensors into `folder`, so that each script runs alone.
Status write_scripts(const recipe::Recipe& recipe, const std::filesystem::path& folder,
                     const Progress& progress);

// A new run in an empty or new folder. `calibration`: what the recipe has from the machine's profile, for the
// record. A control that the container refuses is noted in the manifest, or an error where the recipe states
// it.
Result<Plan> make_plan(const recipe::Recipe& recipe, const std::filesystem::path& folder,
                       const Interpreters& interpreters, const Progress& progress,
                       const Texts& calibration = {});
// Goes on with an interrupted run: its own recipe, scripts, data and weights. An error where its data, or a
// text that rows are held out of, has changed meanwhile (plan/data_digests.h).
Result<Plan> reopen_plan(const std::filesystem::path& folder, const Interpreters& interpreters);

// A contender of the plan, by index, at another batch: its script is emitted anew beside the others, and
// compiled where it is a program. A failure where that cannot be, or the script is the user's own.
Lane lane_at_batch(const Plan& plan, size_t lane, int64_t batch, const Progress& progress);

// What the record says in place of the recipe's text: contenders, the published table, and what was taken
// from the machine's profile (how many bursts, which promise about noise).
void take_recorded(const Manifest& manifest, recipe::Recipe& recipe);

// Variables set for every worker, whatever its controls: quiet logs, no TF32 in the equalised track.
Texts worker_environment(const recipe::Recipe& recipe);

}  // namespace bakeoff
