#pragma once

// Every contender against the baseline: how many times as fast as this one it is.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "summary/summary.h"

namespace bakeoff {

struct AgainstBaseline {
  std::string contender = {};
  std::optional<PairRatio> ratio = {};       // step time over the baseline's; absent: nothing links the two
  Estimate speed = {1, 1, 1};                // times as fast as the baseline
  PairVerdict verdict = PairVerdict::kNone;  // kNotJudged: the run has no verdict
  std::string note = {};                     // why there is no ratio, or on what it rests
  bool operator==(const AgainstBaseline&) const = default;
};

// The ranked contenders in their order; empty where there is no baseline, or it is not ranked.
std::vector<AgainstBaseline> against_baseline(const Summary& summary);

// Takes `name` for the baseline in place of the recipe's. Error: no contender of the run has this name; it says
// the nearest, or all.
Status set_baseline(Summary& summary, const std::string& name);

}  // namespace bakeoff
