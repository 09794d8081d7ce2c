#pragma once

// The environment that a script of the user's own needs.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "emit/emit.h"
#include "environments/environments.h"
#include "recipe/recipe.h"

namespace bakeoff {

// The framework that the script imports, or else a module beside it that it imports; null: none does.
const emit::Framework* framework_of_script(const std::filesystem::path& script);

// The script as a contender, with the settings that follow from its source, such as the backend of Keras.
Result<recipe::Contender> contender_of(const std::filesystem::path& script, const std::string& framework);

// The environment of its framework, ready or not.
Result<Environment> environment_of(const recipe::Contender& contender, const std::filesystem::path& config);

// The interpreter of the environment of `framework`, or of the one that the script imports where none is named; nullopt
// if it imports none. Errors: no such framework; its environment is not ready. Both can be mended by --python.
Result<std::optional<std::filesystem::path>> interpreter_of_script(const std::filesystem::path& script,
                                                                   const std::string& framework,
                                                                   const std::filesystem::path& config);

}  // namespace bakeoff
