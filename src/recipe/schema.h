#pragma once

// The only description of a recipe's keys. It drives the parser, `bakeoff recipe --schema` and
// docs/recipe.md.

#include <string>
#include <vector>

#include "emit/emit.h"
#include "recipe/key.h"

namespace bakeoff::recipe {

const std::vector<Key>& keys();
// The keys of [race]; the keys of the sections whose measurements follow the race.
std::vector<Key> keys_of_the_race();
std::vector<Key> keys_of_studies();
// A value as TOML has it, for messages: "0.01", "[10, 20]", "\"mnist_cnn\"".
std::string example_of(const Key& key);
std::vector<std::string> sections();  // "", "data", ...
std::vector<std::string> names_in(const std::string& section);

// Settings that every contender of every framework may state. They change its process, not its emitted
// source. `pin` takes words or CPUs, "0,2-3" (parse_cpus of contender.h).
const std::vector<emit::Setting>& common_settings();

// JSON Schema (draft 2020-12) of a recipe, with the settings of contenders.
std::string json_schema();
// What `word` is in a recipe, one paragraph each: a key ("batch", "search.batches"), a section ("search") with its keys,
// a setting of contenders ("compile"). Empty: none of them.
std::vector<std::string> explained(const std::string& word);
// The text of docs/recipe.md.
std::string markdown();

}  // namespace bakeoff::recipe
