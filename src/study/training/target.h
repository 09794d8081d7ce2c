#pragma once

// Training towards a target: steps, epochs and seconds until held-out rows are predicted well enough, over
// seeds.
//
// For every seed there are other initial weights and another order of the rows, the same for all contenders;
// for every contender and seed a fresh process, alone on the machine, which trains exactly as in the race.
// Every `every` steps it writes its parameters (operation `state` of the runner protocol), and the referee predicts
// the held-out rows with them in float64: one judge for all frameworks, whose time counts for none of them.
//
// A training whose answers break a rule that the race's trials are held against is a failure with the rule.
//
// In the equalised track the referee trains as well, in float64, from the same weights and on the same
// batches: what a contender's number of steps is held against (study/training/target_rows.h).

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "referee/evaluate.h"
#include "study/study.h"
#include "study/training/held_out.h"
#include "study/training/target_trial.h"

namespace bakeoff {

bool meets(const recipe::Target& target, const TargetLook& look);

// The referee's own training: a look every target.every steps until the target or the last epoch. `data`:
// `rows` rows. Ends early, with what it has, after Ctrl-C.
Result<TargetTrial> train_referee(const HeldOut& held_out, const ir::Training& training,
                                  const recipe::Target& target, referee::Weights weights,
                                  const std::filesystem::path& data, int64_t rows,
                                  const std::function<bool()>& over = proc::interrupted);

// Study::run of trainings to a target, into target.jsonl. Ends where most of another seed would lie beyond
// Afterwards::left_s; the first seed is always trained, and every seed by every contender. While a process
// trains the host is watched as in the race.
Status train_to_target(const Afterwards& race);

}  // namespace bakeoff
