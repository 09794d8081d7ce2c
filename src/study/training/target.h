#pragma once

// Training towards a target: steps, epochs and seconds until held-out rows are predicted well enough, over
// seeds.
//
// For every seed there are other initial weights and another order of the rows, the same for everybody; for
// every contender and seed a fresh process, alone on the machine, which trains exactly as in the race. Every
// `every` steps it writes its parameters (operation `state` of the runner protocol), and the referee predicts
// the held-out rows with them in float64: one judge for all frameworks, whose time counts for nobody.
//
// A training whose answers break a rule that the race's trials are held against is a failure with the rule.
//
// In the equalised track the referee trains as well, in float64, from the same weights and on the same
// batches: what a contender's number of steps is held against (study/training/target_rows.h).

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "plan/plan.h"
#include "study/training/target_trial.h"
#include "records/watch.h"
#include "referee/evaluate.h"
#include "study/training/held_out.h"

namespace bakeoff {

bool meets(const recipe::Target& target, const TargetLook& look);

// The referee's own training: a look every target.every steps until the target or the last epoch. `data`:
// `rows` rows. Ends early, with what it has, after Ctrl-C.
Result<TargetTrial> train_referee(const HeldOut& held_out, const ir::Training& training,
                                  const recipe::Target& target, referee::Weights weights,
                                  const std::filesystem::path& data, int64_t rows);

// Trains whatever target.jsonl does not hold yet, if the recipe states a target. Appends to it; returns when
// all is done, Ctrl-C came, or most of another seed would lie beyond `left_s` seconds (empty: no limit); the
// first seed is always trained, and every one by everybody. While a process trains the host is watched as in
// the race.
Status train_to_target(const Plan& plan, const std::vector<Parity>& parities,
                       const std::vector<Trial>& trials, std::optional<double> left_s,
                       const Progress& progress, const Watch& watch);

}  // namespace bakeoff
