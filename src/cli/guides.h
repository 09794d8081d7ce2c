#pragma once

// The pages of docs/ that messages, recipes and emitted scripts name, which are inside the program.

#include <optional>
#include <string>

namespace bakeoff::cli {

// The page that "docs/recipe.md" or "recipe.md" names; nothing: there is none. The links in it stay as they are.
std::optional<std::string> guide(const std::string& name);

// One line for each page: "docs/recipe.md    Recipes".
std::string all_guides();

}  // namespace bakeoff::cli
