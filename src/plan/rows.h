#pragma once

// How many rows of the data are needed, held out and trained on. A contender's input pipeline needs at
// least one batch; a pipeline that cuts every epoch into whole calls (shuffled, with steps_per_call) needs
// all batches of one call. With fewer rows a script would end before its first step.

#include <cstdint>

#include "base/progress.h"
#include "base/result.h"
#include "data/data.h"
#include "ir/workload.h"
#include "recipe/recipe.h"

namespace bakeoff {

// Number of batches that the data must have. For a user's own script, whose pipeline is unknown: one.
int64_t least_batches(const recipe::Recipe& recipe, const recipe::Contender& contender);

// Number of rows that is enough for all contenders.
int64_t least_rows(const recipe::Recipe& recipe);

// Errors name the line of `batch` or of the contender's setting, and the largest value that works.
Status check_rows(const recipe::Recipe& recipe, int64_t rows);

// The data that the recipe states.
Result<DataSpec> data_spec(const recipe::Recipe& recipe);

// How many of the recipe's `rows` rows may be held out: all of MNIST's test pictures; the last tenth of a
// text; of other data, the rows that no contender needs.
Result<int64_t> rows_to_hold_out(const recipe::Recipe& recipe, int64_t rows);

// Whether the data has a split "test", on which no contender ever trains.
bool has_test_split(const recipe::Recipe& recipe);

// That split.
Result<DataSet> test_split(const recipe::Recipe& recipe, const Progress& progress);

// Whether the workload ends in a loss that compares classes with one integer input.
bool has_classes(const ir::Workload& workload);

// Checks [target] before a run. Errors: an accuracy for a workload without classes; more rows held out than
// data of `rows` rows has besides one batch (MNIST: than there are test pictures). They name the recipe's
// line.
Status check_target(const recipe::Recipe& recipe, int64_t rows);

// "accuracy 97% on 2,000 rows that are not trained on".
std::string target_text(const recipe::Target& target);

// Number of rows on which no contender trains: as the recipe states, else all of MNIST's test pictures,
// else none.
int64_t held_rows(const recipe::Recipe& recipe);

// Number of rows that an epoch of [fit] or [target] trains on if `held` of `rows` rows are held out: all
// rows if the data has a split "test", from which the held-out rows come; else those before the last
// `held`.
int64_t trained_rows(const recipe::Recipe& recipe, int64_t rows, int64_t held);

// Number of training rows whose loss is evaluated after the training: as many as are held out, or
// kTrainedSample if none is.
int64_t trained_sample(const recipe::Recipe& recipe, int64_t rows);
inline constexpr int64_t kTrainedSample = 2000;

// Checks [fit] before a run. Error: more rows held out than there are besides one batch. It names the
// recipe's line.
Status check_fit(const recipe::Recipe& recipe, int64_t rows);

// "41 epochs of 60,000 rows".
std::string fit_text(const recipe::Recipe& recipe, int64_t rows);

}  // namespace bakeoff
