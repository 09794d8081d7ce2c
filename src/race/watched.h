#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "plan/plan.h"
#include "records/trial.h"

namespace bakeoff {

// Runs `act`, which keeps a contender's process busy, and returns what the host did meanwhile, by the
// recipe's rule. Processes that this process started count as part of it.
HostRound watched(const Plan& plan, const std::vector<int>& cpus, pid_t pid,
                  const std::function<void()>& act);

}  // namespace bakeoff
