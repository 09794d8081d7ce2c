#include "recipe/suite_file.h"

#include <fmt/format.h>

#include <sstream>

#include "recipe/toml_fields.h"

namespace bakeoff::recipe {
namespace {

Result<std::vector<std::filesystem::path>> recipes_of(const TomlFields& fields,
                                                      const std::filesystem::path& file, bool shipped) {
  constexpr const char* kExample = "name their files, for example recipes = [\"../mlp_small.toml\"]";
  const auto names = fields.texts("recipes");
  if (fields.get("recipes") == nullptr) return fields.error(nullptr, "'recipes' is missing", kExample);
  if (!names || names->empty())
    return fields.error(fields.get("recipes"), "'recipes' must be a list of files", kExample);
  std::vector<std::filesystem::path> found;
  for (const std::string& name : *names)
    found.push_back(
        shipped ? (file.parent_path() / name).lexically_normal()
                : std::filesystem::weakly_canonical(std::filesystem::absolute(file).parent_path() / name));
  return found;
}

// `from` over `to`, table by table.
void lay_over(const toml::table& from, toml::table& to) {
  for (const auto& [key, node] : from) {
    toml::table* below = to[key.str()].as_table();
    if (const toml::table* above = node.as_table(); above != nullptr && below != nullptr)
      lay_over(*above, *below);
    else
      to.insert_or_assign(key.str(), node);
  }
}

}  // namespace

bool is_suite(std::string_view text) {
  const auto parsed = parse_toml(text);
  return parsed && parsed->contains("recipes");
}

Result<SuiteFile> parse_suite(std::string_view text, const std::filesystem::path& file, bool shipped) {
  TRY(const toml::table root, parse_toml(text, file, "docs/suites.md"));
  const TomlFields fields(root, file.string(), "a suite");
  CHECK_OK(fields.check_names({"name", "recipes", "minutes", "baseline", "every"}));
  SuiteFile suite{.file = file};
  TRY(suite.name, fields.text("name", file.stem().c_str()));
  TRY(suite.baseline, fields.text("baseline", ""));
  TRY(suite.minutes, fields.minutes());
  TRY(suite.recipes, recipes_of(fields, file, shipped));
  TRY(suite.every,
      fields.keys("every",
                  "[every] holds keys of recipes, which replace those of every recipe of the suite"));
  return suite;
}

Result<Recipe> with_every(const Recipe& recipe, const std::string& every, const std::string& whose) {
  if (every.empty()) return recipe;
  TRY(toml::table merged, parse_toml(recipe.text, recipe.file));
  TRY(const toml::table over, parse_toml(every, recipe.file));
  lay_over(over, merged);
  std::ostringstream text;
  text << merged << "\n";
  auto both = parse(text.str(), recipe.file, recipe.shipped);
  if (both) return both;
  return Error{.message = fmt::format("with {}: {}", whose, both.error().message),
               .where = recipe.file.string(),
               .remedy = both.error().remedy};
}

}  // namespace bakeoff::recipe
