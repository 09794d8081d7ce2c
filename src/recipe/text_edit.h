#pragma once

// A key's value changed in the text of a recipe, which keeps its comments and its order. Internal to this room.

#include <string>
#include <string_view>

#include "recipe/reader.h"

namespace bakeoff::recipe {

// The text whose table is `wanted`: `text` with the value of this key as it is there, or without the key. Where that
// place cannot be found in the text, all of it is written anew, without comments.
std::string edited(std::string_view text, const toml::table& wanted, std::string_view section,
                   std::string_view name);

}  // namespace bakeoff::recipe
