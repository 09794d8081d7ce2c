#pragma once

// The recipe of a run as it ran, from its record alone: no other file is opened.

#include <filesystem>

#include "base/result.h"
#include "recipe/recipe.h"
#include "records/records.h"

namespace bakeoff {

// Text and workload of the record, with what take_recorded() replaces. `file`: of the record, for errors.
Result<recipe::Recipe> recorded_recipe(const Manifest& manifest,
                                       const std::filesystem::path& file = "run.json");

// Replaces parts of a recipe by what the record holds: contenders, the published table, and values taken from the
// machine's profile (the promise about noise).
void take_recorded(const Manifest& manifest, recipe::Recipe& recipe);

}  // namespace bakeoff
