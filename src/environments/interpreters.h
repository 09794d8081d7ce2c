#pragma once

// The interpreters that contenders start with, as runs need them.

#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"
#include "recipe/recipe.h"

namespace bakeoff {

struct Interpreter {
  std::filesystem::path python = {};
  std::string why_not = {};   // why nothing starts with it, with the remedy; empty: it is ready
  std::string identity = {};  // changes with the interpreter and its packages
};
// By name of the environment ("torch").
using Interpreters = std::map<std::string, Interpreter>;

// Those of all environments, by the configuration file `config`; empty: the one in the bakeoff home.
Result<Interpreters> find_interpreters(const std::filesystem::path& config);

// "jax cannot start: its environment was never created; `bakeoff env create jax` makes it"; empty: all can.
std::string environments_to_make(const recipe::Recipe& recipe, const Interpreters& interpreters);

}  // namespace bakeoff
