#pragma once

// Gate, race and studies of a plan, as several commands need them.

#include <string>

#include "base/result.h"
#include "cli/console.h"
#include "plan/plan.h"

namespace bakeoff::cli {

// "runs/NAME-20261124-101500".
std::filesystem::path dated_folder(const std::string& name);

// What the machine's profile says about a race, before it starts; the recipe takes its controls over. `profile`:
// a file, "none", or empty for this machine's own.
Result<Texts> use_profile(const std::string& profile, recipe::Recipe& recipe, ConsoleProgress& progress);

// For tests: sensors are files below another folder than /, and GPUs those of another library than NVIDIA's.
void apply_sensor_variables(Plan& plan);

// Everything found is in the run directory afterwards, whatever ended it.
Status carry_out(Plan& plan, ConsoleProgress& progress);

}  // namespace bakeoff::cli
