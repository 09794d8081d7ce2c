#pragma once

// The policy of a race of up to 256 contenders: which contenders run in the next heat, which leave the
// race, how long a block may be, when to stop. Pure: it decides from the state; room `race` carries out the
// decisions. They follow from the records alone, so a race that was killed continues in the same way.
//
//   for (;;) {
//     const Race race = race_state(table, options.ranking);
//     const Heat heat = next_heat(table, race, states, confirmed, options);
//     if (heat.phase == Phase::kDone) break;
//     run heat.members;  add the heat to `table`, or in Phase::kConfirm to a table of its own (++confirmed);
//   }
//
// - The leader meets every contender that is not yet decided against it: fewest heats first, among equals
//   the cheapest first. So a heat of `live` members costs one start of the leader for live - 1 differences.
//   Contenders that are surely slower than some other (eliminated) or tied with the leader (SAME) cost
//   nothing more.
// - In the first heats the cheapest contenders run first, so that a fast leader is known early.
// - Then the winner's curse is removed: the leader, and the contenders tied with it (or the second, if none
//   is), run `confirm_heats` more heats, and only these give their reported times. The verdicts remain
//   those of the race.
//
// A contender that looks hopeless in its first steps (looks_hopeless) ends its heat there. It is tried
// again in another heat with a fresh process. If it looks hopeless again it is out, and is ranked last with
// a bound.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stats/pair_table.h"
#include "stats/ranking.h"

namespace bakeoff::stats {

struct RacingOptions {
  RankingOptions ranking = {.leader_band = 0.005};
  size_t live = 8;           // members of a heat, at least 2
  size_t confirm_heats = 3;  // heats that confirm the winner; 0: none
  bool operator==(const RacingOptions&) const = default;
};

// The state of a contender that the table does not have; index = contender.
struct ContenderState {
  bool out = false;  // it failed, broke a rule, or was dropped
  // Duration of a heat of this contender alone in seconds, start included; absent: not known yet.
  std::optional<double> heat_s = {};
  bool operator==(const ContenderState&) const = default;
};

enum class Phase { kRace, kConfirm, kDone };

struct Heat {
  Phase phase = Phase::kDone;
  std::vector<size_t> members;  // the leader first; empty if the race is done
  bool operator==(const Heat&) const = default;
};

// The next heat. `confirmed`: number of confirmation heats that are done. O(K log K).
Heat next_heat(const PairTable& table, const Race& race, const std::vector<ContenderState>& states,
               size_t confirmed, const RacingOptions& options);

// A wave: up to `most` heats that are planned together, to run on several machines at the same time; the first is
// next_heat(). Those who wait take turns, so that none has two heats more than another. While no leader is known, the
// cheapest contender is in every heat: contenders of different heats are then linked by it. In Phase::kConfirm the
// heats that the confirmation lacks. Empty: the race is done.
std::vector<Heat> next_wave(const PairTable& table, const Race& race,
                            const std::vector<ContenderState>& states, size_t confirmed,
                            const RacingOptions& options, size_t most);

// Of a race whose statements are about the kind of its machines: who is not raced on, though `race` leaves it undecided.
// `early`: what the first heats, earliest_of(), said of the machines that ran. Whom they decided had three times as many
// heats again to show that all machines of the kind agree; where these did not, only other machines could. So nobody is
// left while machines still join.
void leave_to_these_nodes(Race& race, const Race& early);
// How many of the heats are the first ones: a quarter; none if a machine ran that is not among those of the first half.
size_t earliest_of(std::span<const int> node_of_heat);

// The gap that a heat is to decide, for the number of its rounds (plan_rounds of stats/burst_plan.h), log
// scale: that of the member which is farthest behind, so that heats are short until those far behind have
// left; at least the margin. Where more than two members run of which one was never compared: kWideGap.
inline constexpr double kWideGap = 0.3;
double gap_to_decide(const Race& race, const Heat& heat, double margin);

// A contender that looked hopeless twice is reported as at least this many times slower.
inline constexpr double kBoundOfHopeless = 10;
// Whether a contender is too slow to be worth timing: the fastest of its first steps takes at least 1 s,
// and at least twice kBoundOfHopeless times the leader's step, so that the bound still holds if noise
// doubles one of the two. leader_step_s 0: unknown.
bool looks_hopeless(double fastest_step_s, double leader_step_s);

}  // namespace bakeoff::stats
