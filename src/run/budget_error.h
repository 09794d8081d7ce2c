#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "recipe/recipe.h"

namespace bakeoff::run {

// An error that names one of these keys of the recipe's [budget] names `instead`, which replaces them.
Error of_budget(Error error, const recipe::Recipe& recipe, const std::vector<std::string>& keys,
                const std::string& instead);

}  // namespace bakeoff::run
