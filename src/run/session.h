#pragma once

// A run: the plan of a recipe, its clock, and whom it tells. Its steps follow each other:
//
//   make or reopen   data, weights, scripts, lanes            (plan/plan.h)
//   prove            parity.jsonl                             (parity/gate.h)
//   first_heat       trials.jsonl: a first standing early     (race/race.h)
//   race             trials.jsonl
//   study            a file of each study                     (study/study.h)
//   summary          from all of these files                  (summary/summarise.h)
//
// A step begins with what the run directory holds, so a session can stop after any of them and another process can go
// on. Ctrl-C ends a step early; that is no error, and what was found by then is in the run directory.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/time_budget.h"
#include "environments/interpreters.h"
#include "parity/gate.h"
#include "plan/plan.h"
#include "race/race.h"
#include "records/watch.h"
#include "summary/summary.h"

namespace bakeoff::run {

// Whom a session tells.
struct Teller {
  Progress line = kSilent;                // a line that stays
  Watch watch = [](const Happening&) {};  // what happens now
  std::function<void(const TimeBudget&)> time = [](const TimeBudget&) {
  };  // the budget that the session has from now on
};

// What a session finds where it starts.
struct Surroundings {
  Interpreters interpreters = {};
  std::filesystem::path proofs =
      {};  // folder of earlier runs' proofs (parity/proof_store.h); empty: none are reused or kept
  Sensed sensed = {};
  Teller tell = {};
  int64_t begin_ns = monotonic_clock().now_ns();  // when the command began that the budget is of
  Heats* heats = nullptr;                         // who runs the heats; null: this process
};

class Session {
 public:
  // A new run in an empty or new folder. `calibration`: what the recipe takes from the machine's profile
  // (run/taken_profile.h).
  static Result<Session> make(const recipe::Recipe& recipe, const std::filesystem::path& folder,
                              Surroundings with, const Texts& calibration = {});
  // A run that stopped, with its own recipe, scripts, data and weights.
  static Result<Session> reopen(const std::filesystem::path& folder, Surroundings with);

  // Another budget than the recipe's, from the same beginning.
  void limit(const recipe::Budget& budget);
  double left_s() const { return time_.left_s(); }
  const Plan& plan() const { return *plan_; }

  // Proves contenders until `enough` of them have passed, or as many as time allows. Heats keep their share of it.
  Status prove(size_t enough = Gate::kAll);
  // A short heat of those that are proven, if the run has no heat yet and others still wait for their proofs.
  Status first_heat();
  Status race();
  Status study();
  // All steps that are left.
  Status carry_out();

  // What is proven so far.
  std::vector<Parity> parities() const;
  Result<Summary> summary() const;

 private:
  Session(Plan plan, Surroundings with);
  Status open_gate();
  RaceContext context() const;

  std::unique_ptr<Plan> plan_;  // the gate refers to it
  Surroundings with_;
  TimeBudget time_;
  Watch watch_;  // with_.tell.watch, which hears the contenders' names
  std::optional<Gate> gate_ = {};
};

}  // namespace bakeoff::run
