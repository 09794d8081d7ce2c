#pragma once

// From a recipe to a run directory: data, initial weights, emitted scripts, the manifest, and a lane for
// every contender.

#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "plan/lane.h"
#include "recipe/recipe.h"
#include "records/records.h"
#include "records/trial.h"

namespace bakeoff {

struct Plan {
  recipe::Recipe recipe = {};
  RunDirectory directory;
  Manifest manifest = {};
  GateJob gate = {};
  std::vector<Lane> lanes = {};  // in the recipe's order
};

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
// that rows are held out of, has changed (plan/data_digests.h). kContinue keeps other processes from continuing it;
// kHelp is for a process that runs a part of it for the one that continues it: it changes no record.
enum class Reopen { kContinue, kHelp };
Result<Plan> reopen_plan(const std::filesystem::path& folder, const Interpreters& interpreters,
                         Reopen how = Reopen::kContinue);

// A contender of the plan, by index, at another batch or prompt (scenario "generate"): its script is emitted again next
// to the others, and compiled if it is a program. The lane has a failure if that is impossible or the script is the
// user's own.
struct Sizes {
  int64_t batch = 0, prompt = 0;
  bool operator==(const Sizes&) const = default;
};
struct Variation {
  Sizes sizes = {};
  bool one_device = false;  // a contender on several devices runs on one, without the settings of several
  std::string tag = {};     // for a script of the same sizes: "train_torch_TAG.py"
};
Lane lane_at(const Plan& plan, size_t lane, const Variation& how, const Progress& progress);
Lane lane_at_batch(const Plan& plan, size_t lane, int64_t batch, const Progress& progress);

// The run's initial weights, with which all contenders of the equalised track start.
std::filesystem::path initial_weights(const Plan& plan);
// What a contender's worker builds in the race: the recipe's own step, from these weights; in the as-is track from
// weights of its framework. A contender of another run has that run's data and weights.
Build build_of(const Plan& plan, const ContenderStart& entry);

// Variables set for every worker, independent of its controls: quiet logs; no TF32 in the equalised track.
Texts worker_environment(const recipe::Recipe& recipe);

}  // namespace bakeoff
