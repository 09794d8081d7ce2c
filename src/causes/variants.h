#pragma once

// The mistakes that ports make, as changed copies of a recipe. The referee tries each in turn
// (causes/explain.h).

#include <string>
#include <vector>

#include "ir/training.h"
#include "ir/workload.h"

namespace bakeoff {

// A recipe with one thing changed.
struct Variant {
  std::string words = {};  // "epsilon inside the root: sqrt(v + eps)"
  ir::Workload workload = {};
  ir::Training training = {};
};

// Variants that differ from the recipe and can be applied to it.
std::vector<Variant> model_variants(const ir::Workload& workload, const ir::Training& training);
std::vector<Variant> optimizer_variants(const ir::Workload& workload, const ir::Training& training);

}  // namespace bakeoff
