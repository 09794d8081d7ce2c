#pragma once

// Where a trial's warm-up ends, by its own step times (stats/steady.h), and which contenders never became
// steady. The first step of a process, compilation included, is apart already (Trial::first_step_ns); the
// warm-up's steps are few ([race] warmup_steps), and what they leave over is found here, so that few of them
// bring no bias.

#include <map>
#include <string>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

// Fills warmup_bursts, steadiness and drift from the trial's times. A change of level within the first half
// ends the warm-up there, and whole bursts before it do not count; a later one is the machine's, and no
// warm-up. `tolerance`: relative change that is accepted as no drift (the recipe's margin); 2% at least.
//
// Where the marks do not add up to the bursts (asynchronous dispatch), the bursts stand for the steps: then
// the state is "too short", and drift is that of the bursts.
void find_warm_up(Trial& trial, double tolerance);

// A contender that is not ranked as if it were steady.
struct NotSteady {
  int drifting = 0, heats = 0;       // heats in which it drifts, of all
  double drift = 0;                  // their median: 0.1 = the second half of a heat takes 10% longer
  double first_ms = 0, last_ms = 0;  // medians of the first and of the last burst
  // "never became steady: ..."
  std::string text() const;
  bool operator==(const NotSteady&) const = default;
};

// Those whose steps drift (find_steady's tests) in the same direction by more than `tolerance`, 2% at least,
// in more than half of their heats, three at least. A heat in which at least half of the other members drift
// likewise speaks of the machine and counts for nobody; nor does a heat that the host disturbed. Where a contender has too few marked steps for that,
// the drifts of its bursts over all heats must lie beyond the tolerance: interval of 99.5%, valid at every
// look (stats/e_process.h), hence four heats at least.
std::map<std::string, NotSteady> not_steady(const std::vector<Trial>& trials, double tolerance);

}  // namespace bakeoff
