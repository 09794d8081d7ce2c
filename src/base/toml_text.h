#pragma once

// TOML becomes tables here alone. toml++ asserts that no array has a "}" where a value should stand, which a file may
// well have, and then refuses it: it does without asserting.

#include <filesystem>
#include <string>
#include <string_view>
#define TOML_EXCEPTIONS 0
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include "base/result.h"

namespace bakeoff {

// Errors: what is no TOML, with line and column; a key of more than 32 dotted parts. `example`: a file of docs that
// shows what is right.
Result<toml::table> parse_toml(std::string_view text, const std::filesystem::path& file = {},
                               std::string_view example = "docs/recipe.md");

// The value of a node that is a number. An integer above 2^53 is rounded, where toml++ gives nothing.
double real_in(const toml::node& number);

}  // namespace bakeoff
