#pragma once

// Whether the data has as many rows as the contenders' input pipelines must have: a batch, or where a
// pipeline cuts every epoch into whole calls (shuffled steps_per_call) all batches of one call. With fewer a
// script ends before its first step.

#include <cstdint>

#include "base/progress.h"
#include "base/result.h"
#include "data/data.h"
#include "ir/workload.h"
#include "recipe/recipe.h"

namespace bakeoff {

// Batches that the data must have. A script of the user's own says nothing about its pipeline: one.
int64_t least_batches(const recipe::Recipe& recipe, const recipe::Contender& contender);

// The rows that all of them can do with.
int64_t least_rows(const recipe::Recipe& recipe);

// Errors name the line of `batch` or of the contender's setting, and how far to lower it.
Status check_rows(const recipe::Recipe& recipe, int64_t rows);

// Rows that could be held out of the recipe's data of `rows` rows: MNIST's test pictures, the last tenth of a
// text, of other data those beside the ones that every contender needs (plan/rows.h).
Result<int64_t> rows_to_hold_out(const recipe::Recipe& recipe, int64_t rows);

// Whether the data has a split "test", which nobody ever trains on.
bool has_test_split(const recipe::Recipe& recipe);

// Its rows.
Result<DataSet> test_split(const recipe::Recipe& recipe, const Progress& progress);

// Whether the loss of a workload compares classes with one integer input.
bool has_classes(const ir::Workload& workload);

// Before a run: refuses what cannot be, an accuracy of a workload without classes, or more rows to hold out
// than data of `rows` rows has beside one batch (of MNIST: than test pictures). Names the recipe's line.
Status check_target(const recipe::Recipe& recipe, int64_t rows);

// "accuracy 97% on 2,000 rows that are not trained on".
std::string target_text(const recipe::Target& target);

// Rows that nobody trains on: those that the recipe states, else all of MNIST's test pictures, else none.
int64_t held_rows(const recipe::Recipe& recipe);

// Rows that an epoch of [fit] or [target] trains on where `held` rows are held out of data of `rows` rows:
// all of them where the data has a test split, which the held ones come from; else those before the last
// `held`.
int64_t trained_rows(const recipe::Recipe& recipe, int64_t rows, int64_t held);

// Rows of the training data whose loss is taken afterwards: as many as are held out, kTrainedSample where
// none is.
int64_t trained_sample(const recipe::Recipe& recipe, int64_t rows);
inline constexpr int64_t kTrainedSample = 2000;

// Before a run: refuses more rows to hold out than there are beside one batch. Names the recipe's line.
Status check_fit(const recipe::Recipe& recipe, int64_t rows);

// "41 epochs of 60,000 rows".
std::string fit_text(const recipe::Recipe& recipe, int64_t rows);

}  // namespace bakeoff
