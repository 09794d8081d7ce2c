#pragma once

// Finds where a trial's warm-up ends, from its own step times (stats/steady.h), and which contenders never
// became steady. The first step of a process, compilation included, is recorded separately
// (Trial::first_step_ns). The warm-up has few steps ([race] warmup_steps); what remains of it is found
// here, so that few steps cause no bias.

#include <map>
#include <string>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

// Fills warmup_bursts, steadiness and drift from the trial's times. A change of level in the first half
// ends the warm-up there, and whole bursts before it do not count; a later change is caused by the machine
// and is no warm-up. `tolerance`: relative change that still counts as no drift (the recipe's margin), 2%
// at least.
//
// If the marks do not add up to the bursts (asynchronous dispatch), bursts are used instead of steps: then
// the state is "too short", and drift is that of the bursts.
void find_warm_up(Trial& trial, double tolerance);

// A contender that is not ranked as if it were steady.
struct NotSteady {
  int drifting = 0, heats = 0;       // heats in which it drifts, and all its heats
  double drift = 0;                  // median of its drifts: 0.1 = the second half of a heat takes 10% longer
  double first_ms = 0, last_ms = 0;  // medians of its first and of its last bursts
  // "never became steady: ..."
  std::string text() const;
  bool operator==(const NotSteady&) const = default;
};

// Contenders whose steps drift (the tests of find_steady) in one direction by more than `tolerance`, 2% at
// least, in more than half of their heats, three at least. A heat does not count if at least half of its
// other members drift the same way, which shows a change of the machine, or if the host was disturbed. For
// a contender with too few marked steps, the drifts of its bursts over all heats must lie beyond the
// tolerance: by an interval of 99.5% that is valid at every look (stats/e_process.h), hence four heats at
// least.
std::map<std::string, NotSteady> not_steady(const std::vector<Trial>& trials, double tolerance);

}  // namespace bakeoff
