#pragma once

// Contenders that train on several devices: the setting `devices` of their framework. Each device has as many rows
// of every batch: the recipe's batch is that of all devices together.

#include "base/result.h"
#include "recipe/recipe.h"
#include "records/controls.h"
#include "worker/grants.h"

namespace bakeoff {

// Error: a batch does not divide by the devices of a contender. It names the recipe's line.
Status check_shares(const recipe::Recipe& recipe);

// Error: these controls leave fewer processors, or the machine has fewer GPUs where it has any.
Status check_devices(const Texts& settings, const Controls& controls, const Machine& machine);

// The same of every contender of a recipe. It names the recipe's line.
Status check_devices(const recipe::Recipe& recipe, const Controls& shared, const Machine& machine);

}  // namespace bakeoff
