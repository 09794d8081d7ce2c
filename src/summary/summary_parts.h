#pragma once

// Parts of a row of the summary, each from the trials of one contender. Pure functions; internal to
// summary/summarise.h.

#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "records/trial.h"
#include "stats/verdict.h"
#include "summary/summary.h"

namespace bakeoff {

// Medians over sound trials: over trials that started alone on the machine, if there are any.
StartUp start_up(std::vector<const Trial*> trials, const std::optional<Parity>& proof);

// The trial with the median time; absent where none has a number.
std::optional<Transfer> transfer_of(const std::vector<const Trial*>& trials);

ModelBytes model_bytes(const recipe::Recipe& recipe);

RowVerdict row_verdict(stats::Verdict verdict);

// Step times for the picture; where marks do not show work the bursts' means stand for the steps.
std::vector<double> step_times(const Trial& trial);

}  // namespace bakeoff
