#pragma once

// A recipe that a command line changes: its keys and its frameworks, in its text as well, so that a run's record
// says what was run.

#include <string>
#include <vector>

#include "base/result.h"
#include "recipe/recipe.h"

namespace bakeoff::recipe {

// `key`: "batch", "race.threads", "contenders", or kFrameworks, whose value is "torch,jax". The value is TOML; a text
// needs no quotes. An empty one removes the key. Paths are relative to the working directory.
struct Change {
  std::string key = {};
  std::string value = {};
  std::string option = {};  // as the user wrote it, for errors: "--batch 64"
};
inline constexpr const char* kFrameworks = "frameworks";

// The frameworks keep the recipe's contenders of those frameworks; one that it has no contender of is added as it is.
// Errors name the option.
Result<Recipe> with_changes(const Recipe& recipe, const std::vector<Change>& changes);

}  // namespace bakeoff::recipe
