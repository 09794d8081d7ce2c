#pragma once

// `contenders` of a recipe: every table's lists crossed, every setting checked against its framework.

#include <vector>

#include "recipe/reader.h"
#include "recipe/recipe.h"

namespace bakeoff::recipe {

// Errors name the line of the contender, and the nearest valid name.
Result<std::vector<Contender>> read_contenders(const Reader& reader, const toml::table& root);

}  // namespace bakeoff::recipe
