#pragma once

// A suite file: several recipes that are raced one after another (docs/suites.md).
//
//   name = "quick"
//   recipes = ["../mlp_small.toml", "../digits_cnn.toml"]   # relative to this file
//   minutes = 10                                            # of all together
//   baseline = "torch"
//   [every]                                                 # keys of recipes, in place of each recipe's own
//   contenders = [{ framework = "torch" }, { framework = "jax" }]

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recipe/recipe.h"

namespace bakeoff::recipe {

struct SuiteFile {
  std::string name = {};
  std::filesystem::path file = {};
  std::vector<std::filesystem::path> recipes = {};  // absolute; of a shipped suite "recipes/mlp_small.toml"
  double minutes = 0;                               // of all races together; 0: each recipe's own budget
  std::string baseline = {};                        // id of a contender; empty: none
  std::string every = {};                           // TOML of [every]; empty: recipes are raced as they are
  bool operator==(const SuiteFile&) const = default;
};

// Whether the text is that of a suite: it is TOML and has the key `recipes`.
bool is_suite(std::string_view text);

// Errors name file, line, key and the remedy. `shipped`: the suite is inside the program, as its recipes are
// (recipe/shipped.h).
Result<SuiteFile> parse_suite(std::string_view text, const std::filesystem::path& file, bool shipped = false);

// The recipe with every key of `every` in place of its own; tables are merged key by key. The text of the result
// is that of both together. Error: of the recipe as it is, or of the combination, which names `whose`.
Result<Recipe> with_every(const Recipe& recipe, const std::string& every,
                          const std::string& whose = "the suite's [every]");

}  // namespace bakeoff::recipe
