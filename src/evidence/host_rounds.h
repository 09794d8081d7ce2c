#pragma once

// Decides from the readings around every round of bursts whether something disturbed the host, by the
// recipe's rule ([race] max_steal, max_others, ...). The rule does not see the times of the bursts. A
// disturbed round counts like the others (the slowest quarter of a heat's bursts is trimmed in any case); a
// race in which too many rounds were disturbed gives no verdict (HostTally::refusal).
//
// Shares of the processors' time need sample::kLeastWall seconds. Shorter rounds are judged together, as
// many as make up that time (a stretch). If the last rounds of a heat are shorter, the host is watched for the
// missing time while all workers are frozen.
//
// Pressure on the processors is recorded but not judged: a contender with more threads than processors causes
// it itself. The CPU time of other processes is judged instead (sample::HostChange::others).

#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "records/trial.h"
#include "sample/host_sampler.h"

namespace bakeoff {

// The rule that was broken, in words; empty: none. A number that is absent breaks no rule, but a machine that
// slept and a clock that went backwards always count as a disturbance.
std::string disturbance(const sample::HostChange& change, const recipe::HostRule& rule);

// Whether enough is known of a round to say that it was disturbed, or that it was not.
bool was_judged(const HostRound& round);

// The record of one round or of a stretch of rounds. own_cpu_s: CPU time of our own processes, this one
// included. idle_s: time in between in which no worker ran; a CPU quota takes nothing then.
HostRound host_round(const sample::HostSnapshot& before, const sample::HostSnapshot& after, double own_cpu_s,
                     const recipe::HostRule& rule, double idle_s = 0);

// "3 of 41 stretches of training were disturbed: other processes used 31% ..."; empty: none was. `what` is
// the noun, "stretches of training".
std::string disturbed_text(const std::vector<HostRound>& rounds, const std::string& what);

// All rounds of a run. The members of a heat carry the same rounds: each round is counted once, and the
// rounds of a stretch count as one.
struct HostTally {
  static constexpr int kLeastJudged = 4;
  int rounds = 0;                        // rounds that count
  int judged = 0;                        // of `rounds`: long enough, and with counters, to be judged
  int busy = 0;                          // of `judged`: disturbed
  int reruns = 0;                        // rounds that were run again
  std::string worst = {};                // the most frequent disturbance, in words
  std::vector<std::string> absent = {};  // "cpu pressure: there is no readable /proc/pressure/cpu"
  // Why no verdict is given: fewer than kLeastJudged rounds were judged, so that the host's state is
  // unknown, or more than rule.max_busy of them were disturbed. Never if max_busy is 1: then the recipe
  // asks for a verdict even on a busy host.
  std::optional<std::string> refusal(const recipe::HostRule& rule) const;
  bool busy_throughout(const recipe::HostRule& rule) const {
    return judged >= kLeastJudged && busy > rule.max_busy * judged;
  }
  // Whether further heats can bring the missing rounds: some counters exist.
  bool needs_more(const recipe::HostRule& rule) const {
    return rule.max_busy < 1 && judged > 0 && judged < kLeastJudged;
  }
  bool operator==(const HostTally&) const = default;
};
HostTally tally(const std::vector<Trial>& trials);

}  // namespace bakeoff
