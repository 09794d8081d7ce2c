#pragma once

// The scripts of a run's contenders as files: emitted, copied, and the twins beside them. Internal to
// plan/plan.h.

#include <filesystem>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "recipe/recipe.h"
#include "records/trial.h"

namespace bakeoff {

fs::path twin_of_script(const fs::path& script);          // "train_torch_float32.py"
std::vector<fs::path> with_twin(const fs::path& script);  // the script, and its twin where it has one
fs::path layout_of(fs::path script);                      // "train_torch.layout.json"

// A hard link where the file system allows one, else a copy: nobody writes to either.
Status link_or_copy(const fs::path& from, const fs::path& to);

// Emits one contender's script and layout, or copies the user's script. An unsupported op is the contender's
// failure; a folder that cannot be written is everybody's.
Result<std::optional<Failure>> write_script(const recipe::Recipe& recipe, const recipe::Contender& contender,
                                            const fs::path& folder);

// Beside a precision variant its float32 twin, which the gate proves in its place.
Result<std::optional<Failure>> write_twin(const recipe::Recipe& recipe, const recipe::Contender& contender,
                                          const fs::path& folder);

}  // namespace bakeoff
