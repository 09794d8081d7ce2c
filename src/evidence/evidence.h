#pragma once

// What the trials of a race prove so far: the paired table, the rules of its verdicts, and what the race
// cost. Pure functions of the records, shared by the race, the report and the self-test.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "recipe/recipe.h"
#include "records/trial.h"
#include "stats/pair_table.h"
#include "stats/racing.h"

namespace bakeoff {

// The paired table of all heats of the race over `contenders` (their ids; the table's indices are their
// positions). Contenders of out_of_race() are not in it. Confirmation heats are no evidence for verdicts: the
// heats that choose the winner and those that measure it are different; but they too may show a sign.
// `tolerance`: the recipe's margin. From the first heat on in which a pair's data show a sign that the t
// e-process may err (stats/signs.h), the sign-flip backup must agree. A contender that is out and never had a
// value takes no share of alpha. A promised ceiling applies to quiet heats only.
Result<stats::PairTable> tabulate(const std::vector<Trial>& trials,
                                  const std::vector<std::string>& contenders, double tolerance = 0.03);

// How heats are planned and how verdicts are given, for race and report alike. `contenders`: ids of one
// group; its trials may contradict a promised ceiling (evidence/promise.h). Verdicts are about the kind of the nodes from
// stats::kFewestOfAKind nodes on.
stats::RacingOptions racing_options(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                                    const std::vector<std::string>& contenders);

// The racing policy's state of each of `contenders`, from the trials. Before the first heat, the first step
// in the gate estimates the cost of a heat.
std::vector<stats::ContenderState> contender_states(const std::vector<Trial>& trials,
                                                    const std::vector<Parity>& parities,
                                                    const std::vector<std::string>& contenders,
                                                    double tolerance);

// Number of confirmation heats that are done.
size_t confirmed_heats(const std::vector<Trial>& trials);

// Fewest heats after which intervals alone can decide anything between `contenders` at `alpha`, however large
// the gaps are: alpha is shared among all pairs until the first contender is out.
int64_t least_heats(double alpha, size_t contenders);

// Machine time of a trial in seconds, start included. Two trials that start at the same time share theirs.
double trial_seconds(const Trial& trial);

// Duration of the race's heats, and what it would have been if every contender had run in every heat until
// the contender that needed most heats was decided: the same evidence about each, so the same guarantee.
struct RaceCost {
  double raced_s = 0;
  double uniform_s = 0;
  int heats = 0;  // number of those heats
  bool operator==(const RaceCost&) const = default;
};
RaceCost race_cost(const std::vector<Trial>& trials);

}  // namespace bakeoff
