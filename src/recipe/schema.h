#pragma once

// The one description of a recipe's keys. It drives the parser, `bakeoff recipe --schema` and docs/recipe.md.

#include <string>
#include <vector>

#include "emit/emit.h"
#include "recipe/key.h"

namespace bakeoff::recipe {

const std::vector<Key>& keys();
// Of them, those of [race]; those of the sections whose measurements follow the race.
std::vector<Key> keys_of_the_race();
std::vector<Key> keys_beside_the_race();
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
