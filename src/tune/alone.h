#pragma once

// What one change does alone, read from the race of a contender and of its copy with that change.

#include <optional>
#include <string>

#include "base/result.h"
#include "recipe/recipe.h"
#include "summary/summary.h"
#include "tune/changes.h"

namespace bakeoff::tune {

struct Alone {
  Change change = {};
  std::optional<double> gain =
      {};                    // step time as the recipe states it over that with the change; > 1 is a gain
  std::string verdict = {};  // "faster", "slower", "no difference is certain", or why there is no figure
  bool operator==(const Alone&) const = default;
};

Alone alone_of(const Summary& summary, const recipe::Contender& base, const recipe::Contender& changed,
               const Change& change);

// The row with this id; null: it has none.
const Row* row_of(const Summary& summary, const std::string& id);
bool timed(const Row* row);

}  // namespace bakeoff::tune
