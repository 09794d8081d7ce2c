#pragma once

// Whole trainings beside the race: so many epochs in one process, by the contender's own pipeline on the real
// data, and what they come to: seconds, the loss of rows that were trained on, loss and accuracy of rows that
// were not. What published tables state, and step times alone do not show: the first step's compilation,
// every epoch's first batch, and whether the training is worth its time.
//
// A training whose answers break a rule that the race's trials are held against is a failure with the rule.
//
// Weights, order of the rows and the one judge are those of lab/training_ground.h. A training cannot go on in
// another process: after an interruption the one that was under way begins again, those before it stand.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/fit_trial.h"
#include "lab/plan.h"
#include "lab/progress.h"
#include "lab/watch.h"

namespace bakeoff::lab {

// Rows that nobody trains on: those that the recipe states, else all of MNIST's test pictures, else none.
int64_t held_rows(const recipe::Recipe& recipe);

// Rows of the training data whose loss is taken afterwards: as many as are held out, kTrainedSample where
// none is.
int64_t trained_sample(const recipe::Recipe& recipe, int64_t rows);
inline constexpr int64_t kTrainedSample = 2000;

// Before a run: refuses more rows to hold out than there are beside one batch. Names the recipe's line.
Status check_fit(const recipe::Recipe& recipe, int64_t rows);

// "41 epochs of 60,000 rows".
std::string fit_text(const recipe::Recipe& recipe, int64_t rows);

// Steps of the next stretch: what is left of an epoch, but no more than a quarter of the stage's deadline
// takes. One where nothing is known (step_s = 0).
int64_t next_stretch(int64_t done, int64_t total, int64_t of_epoch, double step_s, double stage_seconds);

// Median milliseconds of a step over a contender's sound trials; empty: it was not timed.
std::optional<double> typical_step_ms(const std::vector<Trial>& trials, const std::string& contender);

// Trains whatever fit.jsonl does not hold yet, if the recipe asks for it; says beforehand how long that will
// take by the race's step times. Appends to fit.jsonl; returns when all is done or Ctrl-C came.
Status fit(const Plan& plan, const std::vector<Parity>& parities, const std::vector<Trial>& trials,
           const Progress& progress, const Watch& watch);

}  // namespace bakeoff::lab
