#pragma once

// Gate, race and studies of a plan, as several commands need them.

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/console.h"
#include "plan/plan.h"
#include "summary/summary.h"
#include "tune/tune.h"

namespace bakeoff::cli {

// "runs/NAME-20261124-101500".
std::filesystem::path dated_folder(const std::string& name);

// What the machine's profile says about a race, before it starts; the recipe takes its controls over. `profile`:
// a file, "none", or empty for this machine's own.
Result<Texts> use_profile(const std::string& profile, recipe::Recipe& recipe, ConsoleProgress& progress);

// An error that names one of these keys of the recipe's [budget] names `instead`, which replaces them.
Error of_budget(Error error, const recipe::Recipe& recipe, const std::vector<std::string>& keys,
                const std::string& instead);

// For tests: sensors are files below another folder than /, and GPUs those of another library than NVIDIA's.
void apply_sensor_variables(Plan& plan);

// Everything found is in the run directory afterwards, whatever ended it.
Status carry_out(Plan& plan, ConsoleProgress& progress);

// One race in a folder of its own; one that the folder holds already goes on where it stands.
Result<Summary> raced(const recipe::Recipe& recipe, const std::filesystem::path& folder,
                      const Interpreters& interpreters, const Texts& calibration, ConsoleProgress& progress);

tune::Machine this_machine_to_tune();

}  // namespace bakeoff::cli
