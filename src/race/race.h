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

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "base/result.h"
#include "base/time_budget.h"
#include "evidence/evidence.h"
#include "evidence/heats.h"
#include "plan/plan.h"
#include "race/heat_order.h"
#include "race/sensed.h"
#include "records/machine_report.h"
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

// Runs one heat in this process, with workers of its own. Members start in random order; an even heat uses the reverse
// order of the heat before, so the effect of an early start cancels over two heats. `audit`: what audits need
// (audit/audit.h); null: there are none. `happening`: what is told of the heat as a whole.
HeatResult run_heat(const Plan& plan, const HeatOrder& order, const Sensed& sensed, const Watch& watch,
                    Happening happening, const AuditGround* audit = nullptr);

// Who runs the heats of a race: this process (HeatsHere), or one elsewhere that has the run directory.
class Heats {
 public:
  virtual ~Heats() = default;
  // An error ends the race: no process could run the heat. Members that fail are trials with their reasons.
  virtual Result<HeatResult> run(const Plan& plan, const HeatOrder& order, const Watch& watch,
                                 const Happening& happening) = 0;
};

// With audits, where the work of the plan can be audited; each of its heats is of that plan.
class HeatsHere : public Heats {
 public:
  static Result<std::unique_ptr<HeatsHere>> open(const Plan& plan, const Sensed& sensed);
  Result<HeatResult> run(const Plan& plan, const HeatOrder& order, const Watch& watch,
                         const Happening& happening) override;

 private:
  HeatsHere(const Sensed& sensed, std::optional<AuditGround> audit);
  const Sensed& sensed_;
  std::optional<AuditGround> audit_;
};

// What a race needs beside its plan.
struct RaceContext {
  TimeBudget time = TimeBudget();  // what is left of it is for heats
  Sensed sensed = {};
  Watch watch = [](const Happening&) {};
  Heats* heats = nullptr;  // null: this process
};

// Runs heats until everything is decided and the winner is confirmed, the budget is spent, or Ctrl-C comes.
// Appends trials to the run directory.
Status race(const Plan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
            const RaceContext& with);

// Heats to run next, at the same time on several machines, about `most` of them (stats/racing.h: next_wave); numbered
// from after `last` on. None: everything is decided and confirmed, or the budget's heats are run. Reads the records
// alone: the same records give the same orders.
Result<std::vector<HeatOrder>> next_wave(const Plan& plan, const std::vector<Parity>& parities,
                                         const std::vector<Trial>& trials, size_t most, int last);

// Trials of a heat that ran on `node`, one of several machines, as a race in one process would have kept them: broken
// rules are marked. `peak`: the limits of that machine.
std::vector<Trial> as_kept(const Plan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
                           const std::string& node, const MachineReport& peak);

// One heat of each group (evidence/groups.h) with at least two eligible contenders: a first standing, while others
// wait for their proofs. It counts like any other heat.
Status first_heat(const Plan& plan, const std::vector<Parity>& parities, const RaceContext& with);

}  // namespace bakeoff
