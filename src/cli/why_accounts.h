#pragma once

// What the slower contender's script and the leader's do in a step: both are observed, as `bakeoff explain` observes scripts.

#include "base/progress.h"
#include "base/result.h"
#include "plan/plan.h"
#include "records/why.h"

namespace bakeoff::cli {

// Fills in `why.accounts`; they stay empty where one of the two is no Python script, or makes no steps that can be seen.
Status observe_accounts(const Plan& plan, Why& why, const Progress& progress);

}  // namespace bakeoff::cli
