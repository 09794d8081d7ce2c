#pragma once

// What the trials of a race prove so far: the paired table, by which evidence verdicts are given, and what
// the race cost. Pure functions of the records; the race loop, the report and the self-test share them.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "recipe/recipe.h"
#include "records/trial.h"
#include "stats/pair_table.h"
#include "stats/racing.h"

namespace bakeoff {

// The paired table of all heats of the race over `entrants` (contenders' ids; its indices are positions in
// them), without those of out_of_race(). Heats that confirm the winner are no evidence in it: what chose the
// winner and what measures it are different heats. But they too may show a sign. `tolerance`: the recipe's
// margin; from the first heat on in which a pair's data show a sign that the t e-process may err
// (stats/signs.h), the sign-flip backup has to agree. A contender that is out and never had a value takes no
// share of alpha. A promised ceiling speaks of the quiet heats alone.
Result<stats::PairTable> tabulate(const std::vector<Trial>& trials, const std::vector<std::string>& entrants,
                                  double tolerance = 0.03);

// How heats are planned, and by which evidence verdicts are given: the same for the race and for the report.
// `entrants`: of one group, whose trials may contradict a promised ceiling (evidence/promise.h).
stats::RacingOptions racing_options(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                                    const std::vector<std::string>& entrants);

// What the policy knows of `entrants` from the trials; before the first one their gate's first step stands
// for the cost of a heat.
std::vector<stats::Entrant> entrants_of(const std::vector<Trial>& trials, const std::vector<Parity>& parities,
                                        const std::vector<std::string>& entrants, double tolerance);

// Heats of the confirmation that are done.
size_t confirmed_heats(const std::vector<Trial>& trials);

// Heats without which nothing can be decided between `contenders` at `alpha` by intervals alone, however wide
// the gaps: alpha is shared among all their pairs until the first of them is out.
int64_t least_heats(double alpha, size_t contenders);

// Seconds of the machine that a trial took, start included; two that start beside each other share them.
double trial_seconds(const Trial& trial);

// Seconds of the race's heats, and what it would have cost to run everybody in every heat until the contender
// that needed most heats was decided: the same evidence about each, hence the same guarantee.
struct RaceCost {
  double raced_s = 0;
  double uniform_s = 0;
  int heats = 0;  // that everybody would have run
  bool operator==(const RaceCost&) const = default;
};
RaceCost race_cost(const std::vector<Trial>& trials);

}  // namespace bakeoff
