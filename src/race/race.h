#pragma once

// The race: heats of fresh processes on one CPU set. In a heat every member starts, takes its first step
// (timed: compilation included) and is frozen; each warms up, alone; then bursts alternate in random order,
// one worker running at a time, all others frozen. Each heat gives every member one value, the log of its
// trimmed mean step time, and every pair of members one paired difference.
//
// The host is looked at before and after every round, one burst of each member; a round that was disturbed by
// the recipe's rule is run again, whole (evidence/host_rounds.h). A worker that answers before its work is
// done breaks a rule (evidence/barrier.h). Bursts that were still warm-up do not count (evidence/warm_up.h).
//
// Who runs next, and when it is over, says stats/racing.h; what the records prove, evidence/evidence.h.

#include <set>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "base/result.h"
#include "evidence/evidence.h"
#include "evidence/heats.h"
#include "plan/plan.h"
#include "records/trial.h"
#include "records/watch.h"

namespace bakeoff {

// Contenders that may be raced, by index into the plan's lanes, from the records so far.
std::vector<size_t> eligible(const Plan& plan, const std::vector<Parity>& parities);

// Those of them that neither failed nor broke a rule in the race: they take part in what follows it.
std::vector<size_t> left_after_the_race(const Plan& plan, const std::vector<Parity>& parities,
                                        const std::vector<Trial>& trials);

// Refuses a budget that cannot decide anything, naming what would.
Status check_budget(const recipe::Recipe& recipe);

// How a heat is run.
struct HeatOptions {
  // Members that start beside each other: with 2 their start-up times are not times of their own
  // (Trial::alone).
  size_t at_once = 1;
  bool confirms = false;  // it measures the winner again (stats/racing.h)
  // Seconds of a block of the leader, bursts without start; 0: not known yet, and the shortest block of the
  // heat's members stands for it; one second at least. Nobody's block takes more than four times as long.
  double leader_block_s = 0;
  // The leader's step; 0: not known yet, and the fastest of the heat's members stands for it. A newcomer that
  // looks hopeless beside it (stats/racing.h) by the fastest of its first three steps is not timed further.
  double leader_step_s = 0;
  std::set<size_t> timed = {};         // lanes that were timed in a heat before, or looked at often enough
  const AuditGround* audit = nullptr;  // of audits (audit/audit.h); none: there are none
  // Lanes that were audited in an earlier heat: again only while the audits take a fifth of the heat's time.
  std::set<size_t> audited = {};
};

// Runs one heat; trials in the order of `members` (indices of lanes). Members that fail have their reason.
// The members start in random order; that of an even heat is the reverse of the one before, so that whatever
// an early start is worth cancels over two heats.
std::vector<Trial> run_heat(const Plan& plan, const std::vector<size_t>& members, int heat,
                            const HeatOptions& options, const Watch& watch, Happening happening);

// Heats until everything is decided and the winner measured again, the budget is spent or Ctrl-C comes.
// Appends trials to the run directory.
Status race(const Plan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
            const Watch& watch);

}  // namespace bakeoff
