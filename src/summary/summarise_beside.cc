#include "summary/summarise_beside.h"

#include <string>
#include <utility>
#include <vector>

#include "plan/rows.h"
#include "study/batches/largest_rows.h"
#include "study/latency/latency_summary.h"
#include "study/training/fit.h"
#include "study/training/target.h"
#include "summary/published.h"

namespace bakeoff {
namespace {

// Whole trainings; where there is a published table, their seconds stand beside it instead of step times.
void add_fits(const std::vector<FitTrial>& fits, const recipe::Recipe& recipe, Summary& s) {
  const bool as_is = recipe.training.track == ir::Track::kAsIs;
  const int64_t held = held_rows(recipe);
  const int64_t rows = trained_rows(recipe, s.manifest.data_rows, held);
  std::vector<FitEntrant> entrants;
  for (const Row& row : s.ranked)
    entrants.push_back(
        {row.contender.id, row.group, row.at_least ? std::nullopt : std::optional(row.ms_per_step.value)});
  for (const Row& row : s.unranked) entrants.push_back({row.contender.id, row.group, {}});
  const double untrained = s.manifest.referee_losses.empty() ? 0 : s.manifest.referee_losses.front();
  s.fit =
      fit_rows(fits, entrants, recipe.fit,
               {.rows = rows, .batch = recipe.training.batch, .untrained_loss = untrained, .as_is = as_is});
  s.fit_facts = {.text = fit_text(recipe, rows),
                 .epochs = recipe.fit.epochs,
                 .seeds = recipe.fit.seeds,
                 .held = held,
                 .trained = trained_sample(recipe, rows),
                 .tolerance = as_is ? kLossToleranceAsIs : kLossTolerance};
  if (!s.published) return;
  std::vector<std::pair<std::string, double>> seconds;
  for (const FitRow& row : s.fit) {
    if (row.seeds > 0) seconds.emplace_back(row.contender, row.seconds.median);
  }
  compare_fits(*s.published, seconds, recipe.fit.epochs);
}

}  // namespace

Status add_beside(const RunDirectory& directory, Summary& s) {
  TRY(const auto latencies, directory.latencies());
  TRY(const auto batches, directory.batch_trials());
  TRY(const auto targets, directory.targets());
  TRY(const auto fits, directory.fits());
  TRY(const auto largest, directory.largest_trials());
  if (latencies.empty() && batches.empty() && targets.empty() && fits.empty() && largest.empty())
    return Done{};
  TRY(const recipe::Recipe recipe, recipe::parse_recorded(s.manifest.recipe_text, s.manifest.recipe_file));
  std::vector<std::string> ids;
  for (const auto* rows : {&s.ranked, &s.unranked}) {
    for (const Row& row : *rows) ids.push_back(row.contender.id);
  }
  s.latency_level = 1 - recipe.alpha;
  s.latency = latency_rows(latencies, ids, recipe.latency, s.latency_level);
  const int64_t trained = trained_rows(recipe, s.manifest.data_rows, recipe.target.rows);
  if (!targets.empty()) s.target_text = target_text(recipe.target);
  s.target = target_rows(targets, ids, recipe.target, trained, recipe.training.batch, recipe.alpha);
  s.search = search_rows(batches, ids, recipe.search, recipe.margin);
  s.largest = largest_rows(largest, ids, recipe.largest_batch.most, s.manifest.data_rows);
  if (!fits.empty()) add_fits(fits, recipe, s);
  for (std::string& note : target_notes(targets, recipe)) s.notes.push_back(std::move(note));
  for (std::string& note : latency_notes(latencies)) s.notes.push_back(std::move(note));
  return Done{};
}

}  // namespace bakeoff
