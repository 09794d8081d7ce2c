#pragma once

// The recipe that a command line names, and the options that change it: the same for every command that takes one.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "recipe/changes.h"
#include "recipe/recipe.h"

namespace CLI {
class App;
}

namespace bakeoff::cli {

using RecipeChanges = std::vector<recipe::Change>;  // --batch 64 and the like

inline constexpr const char* kRecipeDoc = "a file (TOML), or the name of one of `bakeoff recipes`";

// --frameworks, --batch, --lr, --seed, --threads and --set.
void add_recipe_options(CLI::App& sub, RecipeChanges& changes);

// Says on standard error which recipe it is, where the name alone does not: one inside the program, one changed.
Result<recipe::Recipe> chosen_recipe(const std::filesystem::path& name, const RecipeChanges& changes = {});

}  // namespace bakeoff::cli
