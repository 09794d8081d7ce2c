#pragma once

// The one description of a recipe's keys. It drives the parser, `bakeoff recipe --schema` and docs/recipe.md.

#include <limits>
#include <string>
#include <vector>

#include "emit/emit.h"

namespace bakeoff::recipe {

enum class Kind { kWord, kPath, kInt, kReal, kFlag };

struct Key {
  std::string section = {};  // "" for the top level
  std::string name = {};
  Kind kind = Kind::kWord;
  std::string fallback = {};            // as shown to people; empty: none
  bool required = false;                // in [optimizer]: where the scenario is "train"
  std::vector<std::string> words = {};  // kWord: the allowed ones; empty: any
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool least_excluded = false;  // the value must be above `least`
  bool list = false;            // kInt, kReal: a number, or a list of one or more
  std::string doc = {};
};

const std::vector<Key>& keys();
std::vector<std::string> sections();  // "", "data", ...
std::vector<std::string> names_in(const std::string& section);

// Settings that every contender of every framework may state: what its process runs under. They change no
// emitted source. `pin` takes words or CPUs, "0,2-3" (parse_cpus of contender.h).
const std::vector<emit::Setting>& common_settings();

// JSON Schema (draft 2020-12) of a recipe, contenders' settings included.
std::string json_schema();
// docs/recipe.md.
std::string markdown();

}  // namespace bakeoff::recipe
