#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "race/sensed.h"
#include "recipe/recipe.h"
#include "records/trial.h"

namespace bakeoff {

// Runs `act`, which keeps a contender's process busy, and returns what the host did meanwhile, by the
// rule. Processes that this process started count as part of it.
HostRound watched(const recipe::HostRule& rule, const Sensed& sensed, const std::vector<int>& cpus, pid_t pid,
                  const std::function<void()>& act);

}  // namespace bakeoff
