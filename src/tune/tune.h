#pragma once

// The best setting of every framework of a recipe. Each setting that is worth trying is raced alone against the
// framework's contender as the recipe states it; what gains is raced together; then the best of all frameworks
// race each other. Every race has its gate, so a setting that computes something else is proven wrong first.

#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "recipe/recipe.h"
#include "run/races.h"
#include "summary/summary.h"
#include "tune/alone.h"

namespace bakeoff::tune {

struct Tuned {
  recipe::Contender base = {}, best = {};
  std::vector<Change> changes = {};  // from `base` to `best`
  Estimate gain = {1, 1, 1};         // of all changes together
  std::vector<Alone> alone = {};     // the greatest gain first
  std::string failure = {};          // why nothing could be raced
  std::string untried = {};          // why its settings were not tried: it races as the recipe states it
};

struct Outcome {
  std::vector<Tuned> tuned = {};  // in the order of the recipe
  // The race of the best settings. The workload as one plain program is in it, too: the limit, which is not tuned.
  Summary best = {};
};

// Of the race of the best: the best row of a framework, or the best of all where there is none; null: nothing was ranked.
const Row* winner(const Summary& best);

// `minutes`: of all races together, each in a folder of `folder`. Returns early after Ctrl-C, with what is known by
// then.
Result<Outcome> tune(const recipe::Recipe& recipe, const Machine& machine, double minutes, run::Races& races,
                     const std::filesystem::path& folder, const Progress& progress);

// For a terminal of `width` columns: what each setting gains, framework by framework. The race of the best is
// rendered as any race.
std::string to_text(const Outcome& result, int width);
std::string to_json(const Outcome& result);
// Recipe `text` with the best contenders in place of its own; comments are lost.
Result<std::string> best_recipe(const std::string& text, const Outcome& result);

}  // namespace bakeoff::tune
