#pragma once

// A published table held against what was measured.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "recipe/published_table.h"

namespace bakeoff {

// Fills in what was measured: ms a step by contender.
void compare_with(recipe::Published& published, const std::vector<std::pair<std::string, double>>& measured);

// Whole trainings take the place of the steps: seconds of `epochs` epochs by contender. Nothing where there
// are none.
void compare_fits(recipe::Published& published, const std::vector<std::pair<std::string, double>>& measured,
                  int64_t epochs);

}  // namespace bakeoff
