#pragma once

// Whether the data has as many rows as the contenders' input pipelines must have: a batch, or where a
// pipeline cuts every epoch into whole calls (shuffled steps_per_call) all batches of one call. With fewer a
// script ends before its first step.

#include <cstdint>

#include "base/result.h"
#include "recipe/recipe.h"

namespace bakeoff::lab {

// Batches that the data must have. A script of the user's own says nothing about its pipeline: one.
int64_t least_batches(const recipe::Recipe& recipe, const recipe::Contender& contender);

// The rows that all of them can do with.
int64_t least_rows(const recipe::Recipe& recipe);

// Errors name the line of `batch` or of the contender's setting, and how far to lower it.
Status check_rows(const recipe::Recipe& recipe, int64_t rows);

}  // namespace bakeoff::lab
