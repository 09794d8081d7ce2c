#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "plan/plan.h"
#include "records/trial.h"

namespace bakeoff {

// What the host did while `act` kept a contender's process busy, by the recipe's rule. What the processes use
// that it started is its own.
HostRound watched(const Plan& plan, const std::vector<int>& cpus, pid_t pid,
                  const std::function<void()>& act);

}  // namespace bakeoff
