#include "summary/summarise_studies.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/texts.h"
#include "records/names.h"
#include "study/all/studies.h"
#include "study/training/fit_section.h"
#include "summary/published.h"
#include "table/text.h"

namespace bakeoff {

namespace {

// Of a study that the recipe asks for: the ranked contenders without a row.
std::string not_measured(const std::vector<Row>& ranked, const std::optional<table::Section>& section) {
  if (ranked.empty()) return "";
  if (!section) return "nothing is measured";
  std::vector<std::string> missing;
  for (const Row& row : ranked) {
    const std::string name = table::one_line(row.contender.id);
    const auto own = [&](const std::string& of) { return of == name || of.starts_with(name + ", "); };
    if (std::ranges::none_of(section->row_names, own)) missing.push_back(spoken(row.contender));
  }
  return missing.empty() ? "" : fmt::format("without a measurement of {}", join(missing, ", "));
}

}  // namespace

Status add_studies(const RunDirectory& directory, Summary& s) {
  TRY(const recipe::Recipe recipe, recorded_recipe(s.manifest));
  StudyContext context{.manifest = s.manifest, .recipe = recipe};
  for (const Row& row : s.ranked)
    context.contenders.push_back(
        {row.contender.id, row.group, row.at_least ? std::nullopt : std::optional(row.ms_per_step.value)});
  for (const Row& row : s.unranked) context.contenders.push_back({row.contender.id, row.group, {}});
  for (const Study& study : studies()) {
    TRY(auto section, study.section(directory, context));
    const std::string missing = study.wanted(recipe) ? not_measured(s.ranked, section) : "";
    if (!missing.empty())
      s.notes.push_back(
          fmt::format("[{}] was not finished, {}; `bakeoff run --resume` goes on", study.name, missing));
    if (!section) continue;
    for (const std::string& remark : section->remarks)
      s.notes.push_back(with_names(s.manifest.contenders, remark));
    s.studies.push_back(std::move(*section));
  }
  if (!s.published) return Done{};
  TRY(const auto seconds, fit_seconds(directory, context));
  compare_fits(*s.published, seconds, recipe.fit.epochs);
  return Done{};
}

}  // namespace bakeoff
