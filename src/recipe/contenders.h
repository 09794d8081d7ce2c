#pragma once

// Reads `contenders` of a recipe: all combinations of every table's lists, every setting checked against
// its framework.

#include <string_view>
#include <vector>

#include "emit/emit.h"
#include "ir/training.h"
#include "recipe/contender.h"
#include "recipe/reader.h"

namespace bakeoff::recipe {

// Errors name the line of the contender and the nearest valid name, or what the framework cannot do in this
// scenario.
Result<std::vector<Contender>> read_contenders(const Reader& reader, const toml::table& root,
                                               ir::Scenario scenario);

// The modules that a line of Python imports: {"numpy", "torch.nn"} of `import numpy as np, torch.nn as nn`; a
// relative one has its dots.
std::vector<std::string> imported_modules(std::string_view line);

// The framework that a user's script imports: the first of them that no other one of them imports besides;
// null: none.
const emit::Framework* framework_of(std::string_view source);

// The setting of the contender with this id; its table if that does not state it; null: no contender has
// this id.
const toml::node* find_setting(const Reader& reader, const toml::table& root, ir::Scenario scenario,
                               const std::string& id, const std::string& setting);

// Checks that `pin` is auto, none or a list of CPUs; the error names the line of `node`.
Status check_pin(const Reader& reader, const toml::node& node, const std::string& pin);

}  // namespace bakeoff::recipe
