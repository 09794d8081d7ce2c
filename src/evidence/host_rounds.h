#pragma once

// Says of what was seen of the host around every round of bursts, by the recipe's rule ([race] max_steal,
// max_others, ...) whether something disturbed it. The rule knows nothing of the bursts' times: whoever runs
// a disturbed round again runs it again whole, every member of the heat, and at most max_reruns times a
// heat. The last attempt counts, whatever it shows.
//
// Shares of the processors' time need sample::kLeastWall seconds. Rounds shorter than that are judged
// together, as many as make up so much (a stretch), and are run again together; where a heat's last ones do
// not, the host is watched for the rest of it with all workers frozen.
//
// Pressure on the processors is recorded, but not judged: a contender with more threads than processors makes
// its own. What others use is judged in its place (sample::HostChange::others).

#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "records/trial.h"
#include "sample/host_sampler.h"

namespace bakeoff {

// Which rule was broken, in words; empty: none. What is absent breaks none, but a machine that slept and a
// clock that went backwards always do.
std::string disturbance(const sample::HostChange& change, const recipe::HostRule& rule);

// Whether enough is known of a round to say that nothing disturbed it, or that something did.
bool was_judged(const HostRound& round);

// The record of one round, or of a stretch of them. own_cpu_s: processor time of our own processes, this one
// included. idle_s: of the time between, that no worker ran: a quota takes nothing from who does not run.
HostRound host_round(const sample::HostSnapshot& before, const sample::HostSnapshot& after, double own_cpu_s,
                     const recipe::HostRule& rule, double idle_s = 0);

// "3 of 41 stretches of training were disturbed: other processes used 31% ..."; empty: none was. `what`:
// "stretches of training".
std::string disturbed_text(const std::vector<HostRound>& rounds, const std::string& what);

// All rounds of a run together. Members of a heat carry the same rounds: each is counted once, and those of a
// stretch as one.
struct HostTally {
  static constexpr int kLeastJudged = 4;
  int rounds = 0;                        // that count
  int judged = 0;                        // of them: long enough, and with counters, to be judged
  int busy = 0;                          // of them: disturbed all the same
  int reruns = 0;                        // rounds that were run again
  std::string worst = {};                // what disturbed most often, in words
  std::vector<std::string> absent = {};  // "cpu pressure: there is no readable /proc/pressure/cpu"
  // Why no verdict can be had: fewer than kLeastJudged rounds were judged, so that it cannot be told whether
  // the host was quiet, or more than rule.max_busy of them were disturbed. Never where max_busy is 1: then
  // the recipe asks for a verdict whatever the host did.
  std::optional<std::string> refusal(const recipe::HostRule& rule) const;
  bool busy_throughout(const recipe::HostRule& rule) const {
    return judged >= kLeastJudged && busy > rule.max_busy * judged;
  }
  // Whether further heats can bring what is missing: some counters are there.
  bool needs_more(const recipe::HostRule& rule) const {
    return rule.max_busy < 1 && judged > 0 && judged < kLeastJudged;
  }
  bool operator==(const HostTally&) const = default;
};
HostTally tally(const std::vector<Trial>& trials);

}  // namespace bakeoff
