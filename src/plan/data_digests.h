#pragma once

// Whether a run that is resumed still has the data that it began with. Recipe, scripts, weights and the rows
// that are trained on lie in the run directory (the rows perhaps as the same file as the user's own); rows of
// a text that are held out are cut from its files anew.

#include <filesystem>

#include "base/result.h"
#include "recipe/recipe.h"
#include "records/trial.h"

namespace bakeoff {

// SHA-256 of each file of the recipe's text, by absolute path; none where its data is no text.
Result<Texts> text_digests(const recipe::Recipe& recipe);

// `data`: the run's data.safetensors. The error names the file, the recipe's key and the remedy. What was not
// recorded is not checked, nor are texts of which no rows are held out.
Status check_unchanged(const recipe::Recipe& recipe, const Manifest& manifest,
                       const std::filesystem::path& data);

}  // namespace bakeoff
