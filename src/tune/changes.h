#pragma once

// What is worth trying for a contender: one setting with another value than the recipe's.

#include <string>
#include <vector>

#include "ir/training.h"
#include "recipe/contender.h"
#include "recipe/recipe.h"

namespace bakeoff::tune {

struct Change {
  std::string setting = {}, value = {};
  bool control = false;  // of the process, not of the source (recipe::common_settings)
  bool operator==(const Change&) const = default;
};
std::string words(const Change& change);  // "channels_last=true"

struct Machine {
  int64_t processors = 1;
  bool gpu = false;
  std::vector<std::string> allocators = {};  // that are installed, besides the system's: "tuned", "jemalloc"
};
Machine this_machine();

// What is worth trying for a contender on this machine, one value at a time.
std::vector<Change> changes(const recipe::Contender& base, ir::Scenario scenario, const Machine& machine);
recipe::Contender with(const recipe::Contender& base, ir::Scenario scenario, const std::vector<Change>& all);

// The recipe with a further contender for each that can compute in bfloat16 and does not: what changes numbers is a
// group of its own, tuned and ranked apart. To predict, nothing is added.
recipe::Recipe with_half_precision(recipe::Recipe recipe);

// The contender's framework, and the value that it has of a setting; "" where it states none.
const emit::Framework& framework_of(const recipe::Contender& contender);
std::string value_of(const recipe::Contender& contender, const std::string& setting);

}  // namespace bakeoff::tune
