#pragma once

// The race: heats of fresh processes on one set of CPUs. In a heat every member starts, makes its first
// step (timed, compilation included) and is frozen. Each then warms up alone. Then bursts alternate in
// random order: one worker runs at a time while all others are frozen. A heat gives every member one value,
// the logarithm of its trimmed mean step time, and every pair of members one paired difference.
//
// The host is read before and after every round, which is one burst of each member, or of all but those with
// long steps. Whether it was disturbed is recorded (evidence/host_rounds.h); it counts all the same, except
// when a clock jumped. A worker that answers
// before its work is done breaks a rule (evidence/barrier.h). Bursts that were still warm-up do not count
// (evidence/warm_up.h).
//
// stats/racing.h decides which contenders run next and when the race ends; evidence/evidence.h says what
// the records prove.

#include <set>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "base/result.h"
#include "evidence/evidence.h"
#include "evidence/heats.h"
#include "plan/plan.h"
#include "race/heat_plan.h"
#include "records/trial.h"
#include "records/watch.h"

namespace bakeoff {

// Contenders that may race, as indices of the plan's lanes, from the records so far.
std::vector<size_t> eligible(const Plan& plan, const std::vector<Parity>& parities);

// Those of them that neither failed nor broke a rule in the race: studies after the race measure these.
std::vector<size_t> left_after_the_race(const Plan& plan, const std::vector<Parity>& parities,
                                        const std::vector<Trial>& trials);

// Refuses a budget with which nothing can be decided; the error names one that is large enough.
Status check_budget(const recipe::Recipe& recipe);

// How a heat is run.
struct HeatOptions {
  // Number of members that start at the same time; with 2, start-up times include contention (Trial::alone).
  size_t at_once = 1;
  HeatPlan plan = {};  // its bursts; what the recipe states counts instead
  // Seconds until the budget ends. As many rounds are run as fit, at least kFewestInTime. Left out are members that
  // would start later, or whose warm-up and bursts would end later (two stay), and audits that would.
  double left_s = std::numeric_limits<double>::infinity();
  std::map<size_t, double> start_s = {};  // lanes: seconds that their starts took; absent: not known
  bool bases_first = false;  // contenders with settings start after those without, and are left out first
  bool confirms = false;     // a confirmation heat, which measures the winner again (stats/racing.h)
  // Step time of the leader in seconds. 0 = unknown: use the fastest in this heat. A contender that was
  // never timed and looks hopeless against it (stats/racing.h), by the fastest of its first three steps, is
  // not timed further.
  double leader_step_s = 0;
  std::set<size_t> timed = {};         // lanes that were timed in an earlier heat, or looked at often enough
  const AuditGround* audit = nullptr;  // what audits need (audit/audit.h); null: no audits
  // Lanes audited in two earlier heats. They are audited again in confirmation heats, and in others while audits have
  // taken at most a tenth of the race.
  std::set<size_t> audited = {};
  double race_s = 0;           // duration of the heats before
  double* audits_s = nullptr;  // of it for audits; the heat adds its own. Null: none before
};

// Runs one heat; returns trials in the order of `members` (indices of lanes). The trial of a member that
// fails has the reason. Members start in random order; an even heat uses the reverse order of the heat
// before, so the effect of an early start cancels over two heats.
std::vector<Trial> run_heat(const Plan& plan, const std::vector<size_t>& members, int heat,
                            const HeatOptions& options, const Watch& watch, Happening happening);

// Runs heats until everything is decided and the winner is confirmed, the budget is spent, or Ctrl-C comes.
// Appends trials to the run directory.
Status race(const Plan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
            const Watch& watch);

// One heat of each group (evidence/groups.h) with at least two eligible contenders: a first standing, while others
// wait for their proofs. It counts like any other heat.
Status first_heat(const Plan& plan, const std::vector<Parity>& parities, const Watch& watch);

}  // namespace bakeoff
