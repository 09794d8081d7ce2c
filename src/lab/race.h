#pragma once

// The race: heats of fresh processes on one CPU set. In a heat every member starts, takes its first step
// (timed: compilation included) and is frozen; each warms up, alone; then bursts alternate in random order,
// one worker running at a time, all others frozen. Each heat gives every member one value, the log of its
// trimmed mean step time, and every pair of members one paired difference.
//
// The host is looked at before and after every round, one burst of each member; a round that was disturbed by
// the recipe's rule is run again, whole (lab/host_watch.h). A worker that answers before its work is done
// breaks a rule (lab/barrier.h). Bursts that were still warm-up do not count (lab/warm_up.h).

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/plan.h"
#include "lab/trial.h"
#include "lab/watch.h"
#include "stats/pair_table.h"
#include "stats/ranking.h"

namespace bakeoff::lab {

// Contenders that may be raced, by index into the plan's lanes, from the records so far.
std::vector<size_t> eligible(const Plan& plan, const std::vector<Parity>& parities);

// One heat's evidence, by index into `members`' lanes: log of the trimmed mean of the bursts' ms per step.
std::optional<double> heat_value(const Trial& trial);

// Contenders that failed, or broke a rule, in some heat: they are out, and none of their heats counts.
std::set<std::string> failed_in(const std::vector<Trial>& trials);

// These, and those that never become steady (lab/warm_up.h): not ranked, and in no further heat. `tolerance`:
// the recipe's margin.
std::set<std::string> out_of_race(const std::vector<Trial>& trials, double tolerance);

// The paired table of all heats over `entrants` (contenders' ids; its indices are positions in them), without
// those of out_of_race().
Result<stats::PairTable> tabulate(const std::vector<Trial>& trials, const std::vector<std::string>& entrants,
                                  double tolerance = 0.03);

// Heats without which nothing can be decided between `contenders` at `alpha`, however wide the gaps.
int64_t least_heats(double alpha, size_t contenders);
// Refuses a budget that cannot decide anything, naming what would.
Status check_budget(const recipe::Recipe& recipe);

// Runs one heat; trials in the order of `members` (indices of lanes). Members that fail have their reason.
// `at_once` members start beside each other: their start-up times are then not times of their own
// (Trial::alone).
std::vector<Trial> run_heat(const Plan& plan, const std::vector<size_t>& members, int heat, size_t at_once,
                            const Watch& watch, Happening happening);

// Who runs in the next heat: the leader and those not yet decided against it, fewest heats first; at most
// `live`. Contenders that no common heats link to the leader come first. Empty: nothing is left to decide.
std::vector<size_t> next_members(const stats::PairTable& table, const stats::Race& race,
                                 const std::vector<bool>& failed, size_t live);

// Heats until everything is decided, the budget is spent or Ctrl-C comes. Appends trials to the run
// directory.
Status race(const Plan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
            const Watch& watch);

}  // namespace bakeoff::lab
