#pragma once

// Files of a run's contenders: emitted and copied scripts, and their float32 counterparts. Internal to
// plan/plan.h.

#include <filesystem>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "recipe/recipe.h"
#include "records/trial.h"

namespace bakeoff {

fs::path twin_of_script(const fs::path& script);  // the counterpart's script: "train_torch_float32.py"
std::vector<fs::path> with_twin(const fs::path& script);  // the script, and its counterpart if it has one
fs::path layout_of(fs::path script);                      // "train_torch.layout.json"
fs::path stated_of(fs::path script);  // of a script of the user's own: "own_1_mine.contender.json"

// Makes a hard link if the file system allows it, else a copy. Neither file is written to afterwards.
Status link_or_copy(const fs::path& from, const fs::path& to);

// Emits one contender's script and layout, or copies the user's script. An op that the framework lacks is
// that contender's failure; a folder that cannot be written is an error of the run.
Result<std::optional<Failure>> write_script(const recipe::Recipe& recipe, const recipe::Contender& contender,
                                            const fs::path& folder);

// Emits the float32 counterpart of a precision variant, which the gate proves in its place.
Result<std::optional<Failure>> write_twin(const recipe::Recipe& recipe, const recipe::Contender& contender,
                                          const fs::path& folder);

}  // namespace bakeoff
