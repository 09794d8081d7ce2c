#pragma once

// Whole trainings beside the race: some epochs in one process, by the contender's own pipeline on the real
// data, and their results: seconds, the loss of rows that were trained on, loss and accuracy of rows that
// were not. What published tables state, and step times alone do not show: the first step's compilation,
// every epoch's first batch, and whether the training is worth its time.
//
// A training whose answers break a rule that the race's trials are held against is a failure with the rule.
//
// Weights, order of the rows and the judge are those of study/training/training_setup.h. A training cannot
// go on in another process: after an interruption the one that was under way begins again, those before it
// stand.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "recipe/studies.h"
#include "records/trial.h"
#include "study/study.h"
#include "study/training/target_trial.h"

namespace bakeoff {

// Steps of the next stretch: what is left of an epoch, but no more than a quarter of the stage's deadline
// takes. One where nothing is known (step_s = 0).
int64_t next_stretch(int64_t done, int64_t total, int64_t of_epoch, double step_s, double stage_seconds);

// Whether a training ends early after the last of these looks, one for each epoch: none of the last
// `patience` is below the lowest of those before it by more than min_delta. A loss that is no number is never
// lower.
bool out_of_patience(const std::vector<TargetLook>& watched, const recipe::Fit& fit);

// Median milliseconds of a step over a contender's sound trials; empty: it was not timed.
std::optional<double> typical_step_ms(const std::vector<Trial>& trials, const std::string& contender);

// Study::run of whole trainings, into fit.jsonl. It says beforehand how long they will take by the race's
// step times.
Status fit(const Afterwards& race);

}  // namespace bakeoff
