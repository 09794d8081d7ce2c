#pragma once

#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "base/texts.h"
#include "recipe/recipe.h"

namespace bakeoff::run {

// What the machine's profile (`bakeoff calibrate`) says about a race before it starts; the recipe takes its controls
// over where it states none itself. Returns what was taken, for the record. `profile`: a file, "none", or empty for
// this machine's own. Error: a file that is no profile of this machine, or a prediction that the budget cannot hold.
Result<Texts> take_profile(const std::string& profile, recipe::Recipe& recipe, const Progress& tell);
// The first of these errors, before any recipe is read.
Status check_profile(const std::string& profile);

}  // namespace bakeoff::run
