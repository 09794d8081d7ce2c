#include "summary/summarise_studies.h"

#include <utility>

#include "study/all/studies.h"
#include "study/training/fit_section.h"
#include "summary/published.h"

namespace bakeoff {

Status add_studies(const RunDirectory& directory, Summary& s) {
  TRY(const recipe::Recipe recipe, recipe::parse_recorded(s.manifest.recipe_text, s.manifest.recipe_file));
  StudyContext context{.manifest = s.manifest, .recipe = recipe};
  for (const Row& row : s.ranked)
    context.contenders.push_back(
        {row.contender.id, row.group, row.at_least ? std::nullopt : std::optional(row.ms_per_step.value)});
  for (const Row& row : s.unranked) context.contenders.push_back({row.contender.id, row.group, {}});
  for (const Study& study : studies()) {
    TRY(auto section, study.section(directory, context));
    if (!section) continue;
    s.notes.insert(s.notes.end(), section->remarks.begin(), section->remarks.end());
    s.studies.push_back(std::move(*section));
  }
  if (!s.published) return Done{};
  TRY(const auto seconds, fit_seconds(directory, context));
  compare_fits(*s.published, seconds, recipe.fit.epochs);
  return Done{};
}

}  // namespace bakeoff
