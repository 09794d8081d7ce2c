#include "cli/recipe_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/console.h"
#include "recipe/shipped.h"

namespace bakeoff::cli {
namespace {

namespace fs = std::filesystem;

struct Shorthand {
  const char* option;
  const char* key;
  const char* type;
  const char* what;
};
constexpr Shorthand kShorthands[] = {
    {"--frameworks", recipe::kFrameworks, "NAMES",
     "with commas: the recipe's contenders of these frameworks; one that it has no contender of is added"},
    {"--batch", "batch", "ROWS", "rows in one step, instead of the recipe's"},
    {"--lr", "optimizer.lr", "NUMBER", "learning rate, instead of the recipe's"},
    {"--seed", "seed", "NUMBER", "seed, instead of the recipe's"},
    {"--threads", "race.threads", "NUMBER", "threads of every contender, instead of the recipe's"},
};

std::string no_key_and_value(const std::string& text) {
  const size_t at = text.find('=');
  return at == std::string::npos || at == 0 ? "must be KEY=VALUE, for example --set race.threads=2" : "";
}

Error script_instead_of_recipe(const fs::path& script) {
  const std::string name = script.string();
  return {.message = fmt::format("'{}' is a Python script, and a recipe (TOML) is wanted", name),
          .remedy = fmt::format(
              "`bakeoff check {}` says what it lacks to be a contender of a recipe, `bakeoff explain {}` "
              "what makes it slow; `bakeoff import {}:NAME` imports a model of it",
              name, name, name)};
}

}  // namespace

void add_recipe_options(CLI::App& sub, RecipeChanges& changes) {
  for (const Shorthand& one : kShorthands) {
    sub.add_option_function<std::string>(
           one.option,
           [&changes, one](const std::string& value) {
             changes.push_back({one.key, value, fmt::format("{} {}", one.option, value)});
           },
           one.what)
        ->type_name(one.type)
        ->check(
            CLI::Validator([](const std::string& text) { return text.empty() ? "needs a value" : ""; }, ""));
  }
  sub.add_option_function<std::vector<std::string>>(
         "--set",
         [&changes](const std::vector<std::string>& all) {
           for (const std::string& text : all) {
             const size_t at = text.find('=');
             changes.push_back({text.substr(0, at), text.substr(at + 1), "--set " + text});
           }
         },
         "any key of the recipe, for example race.threads=2; without a value the key is removed; once for each key")
      ->type_name("KEY=VALUE")
      ->check(CLI::Validator(no_key_and_value, ""))
      ->allow_extra_args(false);
}

Result<recipe::Recipe> chosen_recipe(const fs::path& name, const RecipeChanges& changes) {
  if (name.extension() == ".py") return script_instead_of_recipe(name);
  TRY(const recipe::Recipe recipe, recipe::load(name));
  TRY(recipe::Recipe changed, recipe::with_changes(recipe, changes));
  if (recipe.shipped)
    note(fmt::format("recipe: {} inside this program (`bakeoff init {}` writes it here, to edit)",
                     recipe.file.string(), recipe.file.stem().string()));
  else if (recipe.file != name)
    note("recipe: the file " + recipe.file.string());
  if (!changes.empty()) {
    std::string with;
    for (const recipe::Change& change : changes) with += " " + change.option;
    note("recipe: changed by" + with);
  }
  return changed;
}

}  // namespace bakeoff::cli
