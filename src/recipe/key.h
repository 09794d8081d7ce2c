#pragma once

// A key of a recipe.

#include <limits>
#include <string>
#include <vector>

namespace bakeoff::recipe {

// kTable: a table of texts or lists of texts.
enum class Kind { kWord, kPath, kInt, kReal, kFlag, kTable };

struct Key {
  std::string section = {};  // "" for the top level
  std::string name = {};
  Kind kind = Kind::kWord;
  std::string fallback = {};            // the default, as shown to people; empty: none
  bool required = false;                // in [optimizer]: only if the scenario is "train"
  std::vector<std::string> words = {};  // kWord: the allowed ones; empty: any
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool least_excluded = false;  // the value must be above `least`
  bool list = false;            // a value, or a list of one or more
  std::string example = {};     // as TOML has it; empty: example_of() (schema.h) makes one of the rest
  std::string doc = {};
};

}  // namespace bakeoff::recipe
