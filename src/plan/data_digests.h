#pragma once

// Checks that a resumed run still has the data that it began with. Recipe, scripts, weights and training
// rows lie in the run directory (the rows may be a hard link to the user's file); rows of a text that are
// held out are cut from its files again.

#include <filesystem>

#include "base/result.h"
#include "recipe/recipe.h"
#include "records/trial.h"

namespace bakeoff {

// `data`: the run's data.safetensors. The error names the file, the recipe's key and the remedy. Files
// without a recorded digest are not checked; texts are checked only if rows are held out of them.
Status check_unchanged(const recipe::Recipe& recipe, const Manifest& manifest,
                       const std::filesystem::path& data);

}  // namespace bakeoff
