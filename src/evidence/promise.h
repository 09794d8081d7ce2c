#pragma once

// A promise about the noise of a race (RankingOptions::ceiling of stats/ranking.h), and whether the race's
// own data contradict it. There is a promise only if a profile of this machine measured one
// (calibrate/profile.h) or the recipe states one (race.noise_ceiling). It applies only to heats that are
// known to be undisturbed, decides nothing before two such heats, and is withdrawn for the whole race as
// soon as the data contradict it. Pure functions of the records.

#include <set>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "records/trial.h"

namespace bakeoff {

// Key in Manifest::calibration of a ceiling that comes from the machine's profile.
inline constexpr const char* kTakenCeiling = "taken: race.noise_ceiling";

// Number of heats of a pair before a promise decides anything: one faulty process makes one heat wrong, and
// two heats that differ show it.
inline constexpr size_t kPromisedFrom = 2;

// Heats in which every round that counts was judged and none was disturbed.
std::set<int> quiet_heats(const std::vector<Trial>& trials);

struct Promise {
  // What restarting the processes adds to a heat's d: its standard deviation (log scale) is at most this.
  // 0: there is no promise.
  double stated = 0;
  bool by_recipe = false;      // stated by the recipe; otherwise measured by a profile
  std::string withdrawn = {};  // what contradicts it, in words; empty: nothing
  // The ceiling that verdicts may use; 0: none.
  double ceiling() const { return withdrawn.empty() ? stated : 0; }
  bool operator==(const Promise&) const = default;
};

// Tests the promise on the quiet heats of `contenders`, validly at every look, by a bet: a true promise loses
// with probability at most 20% (a wrong promise costs verdicts; one withdrawn without need costs heats).
// A heat's d has variance V = c^2 + v at most, c being the promise and v what the heat's own bursts show
// (HeatMeasure::variance_high of stats/heat_value.h). For d_1 .. d_n and S the sum of the squares of their
// deviations from their mean weighted by 1 / V, each divided by its V, the mean over s in
// {1.25, 1.5, 2, 3, 5, 10, 30} of
//
//   s^-(n-1) exp(S / 2 (1 - 1 / s^2))
//
// has expectation at most 1 (it is the likelihood ratio of sd = s sqrt(V) against sqrt(V) of the n - 1
// contrasts; for noise that is sub-Gaussian and not normal see Hsu, Kakade & Zhang 2012). The mean over all
// pairs is compared with 1/20%. A promise is about twice what was measured, so a true one is hardly ever
// withdrawn.
Promise promise_of(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                   const std::vector<std::string>& contenders);

// Natural logarithm of that mean over s. `squares`: S.
double log_bet_against(size_t n, double squares);

}  // namespace bakeoff
