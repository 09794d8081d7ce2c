#pragma once

// The policy of a race of up to 256 contenders: who runs in the next heat, who is not worth another one, how
// long a block may be, when to stop. Pure: state in, decision out; the lab runs what it says, after a kill
// too, because all of it follows from the records.
//
//   for (;;) {
//     const Race race = race_state(table, options.ranking);
//     const Heat heat = next_heat(table, race, entrants, confirmed, options);
//     if (heat.phase == Phase::kDone) break;
//     run heat.members;  add the heat to `table`, or in Phase::kConfirm to a table of its own (++confirmed);
//   }
//
// - The leader meets everyone who is not yet decided against it, fewest heats first, of equal ones the
//   cheapest first; so a heat of `live` costs one start of the leader for live - 1 differences. Those who are
//   surely slower than anyone (eliminated) or tied with the leader (SAME) cost nothing more.
// - Everybody's first heat: cheapest first, so that a fast leader stands early.
// - Then the winner's curse is taken off: the leader, and those tied with it (or the next, where nobody is),
// run
//   `confirm_heats` heats more, from which alone their times are reported. The verdicts stay those of the
//   race.
//
// A contender that looks hopeless at its first steps (looks_hopeless) ends its heat there. It is looked at
// again, in another heat and a fresh process; looking so twice it is out, and ranked last with a bound.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stats/pair_table.h"
#include "stats/ranking.h"

namespace bakeoff::stats {

struct RacingOptions {
  RankingOptions ranking = {.leader_band = 0.005};
  size_t live = 8;           // members of a heat, at least 2
  size_t confirm_heats = 3;  // 0: no confirmation
  bool operator==(const RacingOptions&) const = default;
};

// What the policy knows of a contender beyond the table; index = contender.
struct Entrant {
  bool out = false;  // failed, broke a rule, or dropped
  // Seconds of a heat of this contender alone, start included, measured or estimated; 0: unknown, last.
  double heat_s = 0;
  bool operator==(const Entrant&) const = default;
};

enum class Phase { kRace, kConfirm, kDone };

struct Heat {
  Phase phase = Phase::kDone;
  std::vector<size_t> members;  // the leader first; empty when done
  bool operator==(const Heat&) const = default;
};

// `confirmed`: heats of the confirmation that are done. O(K log K).
Heat next_heat(const PairTable& table, const Race& race, const std::vector<Entrant>& entrants,
               size_t confirmed, const RacingOptions& options);

// What is said of a contender that looked hopeless twice: it is at least so many times slower.
inline constexpr double kBoundOfHopeless = 10;
// Whether a contender is too slow for its times to be worth what they cost: the fastest of its first steps
// takes a second or more, and twice kBoundOfHopeless times the leader's step or more, so that noise may
// double one of the two and the bound still holds. leader_step_s 0: not known.
bool looks_hopeless(double fastest_step_s, double leader_step_s);

// Steps of a burst: what fills `burst_s`, at least 2, but not so many that `bursts` of them pass `cap_s` (the
// block's cap in seconds, 0: none); 1 when even two steps each would.
int64_t burst_steps(double step_s, double burst_s, int64_t bursts, double cap_s);

}  // namespace bakeoff::stats
