#include "plan/recorded_recipe.h"

#include <cstdlib>

#include "evidence/promise.h"
#include "ir/text.h"

namespace bakeoff {

void take_recorded(const Manifest& manifest, recipe::Recipe& recipe) {
  recipe.published.text = manifest.published_text;
  recipe.contenders.clear();
  for (const Contender& c : manifest.contenders) {
    recipe.contenders.push_back({.framework = c.framework,
                                 .settings = c.settings,
                                 .controls = c.stated,
                                 .environment = c.environment,
                                 .script = c.own_script,
                                 .id = c.id,
                                 .file = c.script});
  }
  const auto recorded = [&](const char* key, auto set) {
    if (const auto found = manifest.controls.find(key); found != manifest.controls.end())
      set(found->second.c_str());
  };
  // Older records have a ceiling that was not measured; without a profile only the recipe's own counts.
  if (manifest.calibration.contains(kTakenCeiling))
    recorded("noise_ceiling", [&](const char* text) { recipe.race.noise_ceiling = std::atof(text); });
}

Result<recipe::Recipe> recorded_recipe(const Manifest& manifest, const std::filesystem::path& file) {
  TRY(recipe::Recipe recipe, recipe::parse_recorded(manifest.recipe_text, manifest.recipe_file));
  take_recorded(manifest, recipe);
  TRY(recipe.workload, ir::parse(manifest.workload_text, file.string()));
  return recipe;
}

}  // namespace bakeoff
