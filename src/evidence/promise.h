#pragma once

// A promise about the noise of a race (RankingOptions::ceiling of stats/ranking.h), and what is left of it
// once the race's own data are seen. There is a promise only where a profile of this machine measured one
// (calibrate/profile.h), or where the recipe states its own (race.noise_ceiling). It speaks only of heats of which
// it is known that nothing disturbed them, it decides nothing before two such heats, and it is withdrawn for
// the whole race as soon as the data contradict it. Pure functions of the records.

#include <set>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "records/trial.h"

namespace bakeoff {

// Key in Manifest::calibration of a ceiling that was taken from the machine's profile.
inline constexpr const char* kTakenCeiling = "taken: race.noise_ceiling";

// Heats of a pair before a promise decides anything: one process that is out of order makes one heat wrong,
// and two heats that differ say so.
inline constexpr size_t kPromisedFrom = 2;

// Heats in which every round that counts was judged, and none was disturbed.
std::set<int> quiet_heats(const std::vector<Trial>& trials);

struct Promise {
  double stated = 0;           // standard deviation of a heat's d (log scale); 0: nothing was promised
  bool by_recipe = false;      // the user's own; otherwise a profile's
  std::string withdrawn = {};  // in words what contradicts it; empty: nothing does
  // What may be relied on; 0: nothing.
  double ceiling() const { return withdrawn.empty() ? stated : 0; }
  bool operator==(const Promise&) const = default;
};

// Tested on the quiet heats of `entrants`, valid at every look, by a bet that a promise which holds loses with
// probability 20% at most (a wrong promise costs verdicts, one withdrawn without need costs heats): for log ratios d_1 .. d_n with sd <= c and S their squared deviations from their
// mean, the mean over s in {1.25, 1.5, 2, 3, 5, 10, 30} of
//
//   s^-(n-1) exp(S / (2 c^2) (1 - 1 / s^2))
//
// has expectation 1 at most (the likelihood ratio of sd = s c against sd = c of the n - 1 contrasts; Hsu,
// Kakade & Zhang 2012 for noise that is sub-Gaussian and not normal). It is taken over the heats of each
// pair, and over the rounds of each heat, where a round's ratio may have sd c sqrt(rounds); the mean over
// pairs and over both kinds is compared with 1/20%. A ceiling is twice what was seen or
// more, so that one that holds is hardly ever withdrawn.
Promise promise_of(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                   const std::vector<std::string>& entrants);

// Natural log of that mean over s.
double log_bet_against(double ceiling, size_t n, double squares);

}  // namespace bakeoff
