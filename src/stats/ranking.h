#pragma once

// Who leads, who is out, who must run again, and in the end who is tied with whom. Pure functions of the
// paired evidence (stats/pair_table.h); the race loop of the lab calls the first after every heat, the
// reports the second.
//
//   Race race = race_state(table, {.alpha = 0.01, .margin = 0.02});
//   while (!race.still_undecided.empty() && budget.left()) {
//     run a heat of *race.leader and some of race.still_undecided;  table.add(heat);
//     race = race_state(table, options);
//   }
//   Ranking ranking = rank(table, options);
//
// Error rates, at every look together, whatever made the loop stop; K = table.contenders(), also those that
// failed, so that K is fixed before the first heat.
//
// - Family::kAllPairs, every interval at alpha/(K(K-1)/2): with probability >= 1 - alpha everything holds at
//   once: every interval and elimination, every verdict that rests on its own interval, every separation,
//   rank range and tie group.
// - Family::kBest, intervals against the leader and eliminations at alpha/(K-1) (multiple comparisons with
//   the best, Hsu 1981): with probability >= 1 - alpha the truly fastest contender is never eliminated, so a
//   wrong winner is named with probability <= alpha; and while the truly fastest leads, all verdicts against
//   it hold together. log(K/2) less evidence is needed: worth it for many contenders. What it does not cover
//   is exact ties at the top, where the data choose which of the equals leads. Simulated, 40 looks, alpha =
//   1%: some verdict between equals is false in .3% of races of 3 identical contenders, 1.3% of 6, 1.5% of 10
//   (no winner was named in 1,500 races of each), against .2% of 6 or 10 under kAllPairs.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "stats/interval.h"
#include "stats/pair_table.h"
#include "stats/verdict.h"

namespace bakeoff::stats {

// Among how many comparisons alpha is shared in race_state(): K(K-1)/2, or K-1.
enum class Family { kAllPairs, kBest };

struct RankingOptions {
  double alpha = 0.01;         // total, 0 < alpha < 1
  double margin = 0.02;        // relative, of the verdicts (stats/verdict.h)
  double eliminate_above = 0;  // relative: out when surely slower than somebody by more than this
  double resolution = 0;       // of d: the step of the clock (stats/e_process.h)
  Family family = Family::kAllPairs;
  // A promise that the noise of d is no wider than this (log scale; ceiling_half_width of stats/e_process.h),
  // 0: none. Then every interval is cut by the one that the promise gives (ceiling_half_width), at a tenth of
  // alpha that is set aside for it, and a contender many ceilings behind is eliminated after one heat instead
  // of the 4 to 8 that an unknown variance asks for.
  // Promise several times what A/A blocks show: .1 where the worst of them differ by .075.
  double ceiling = 0;
  size_t ceiling_from = 1;  // heats of a pair that the promise speaks of, before it decides anything
  // Relative. The leader is whoever ran in most heats among those not eliminated whose effect lies within
  // this of the least, and not simply the least: so the lead among equals does not change from heat to heat,
  // and evidence against one leader adds up. 0: the least.
  double leader_band = 0;
  bool operator==(const RankingOptions&) const = default;
};

// One contender against the leader; d = log(contender / leader), > 0 = slower.
struct Standing {
  std::optional<double> effect;  // least-squares log time relative to the leader; empty: never compared
  size_t pairs = 0;              // heats shared with the leader
  double gap = 0;                // mean of d over them
  Interval interval;             // of d, at the level of the family
  // The leader against itself: SAME, interval [0, 0]. An eliminated contender whose interval does not decide
  // (it met this leader too seldom) is SLOWER: were the leader the fastest, it would be slower than that.
  Verdict verdict = Verdict::kUndecided;
  bool within_margin = false;           // the whole interval
  std::optional<size_t> eliminated_by;  // the contender it is most surely slower than
  double behind = 0;                    // lower bound of d against that one
  bool operator==(const Standing&) const = default;
};

struct Race {
  // Least effect among those not eliminated (but see leader_band); empty until two contenders have met.
  // Equal effects: lowest index.
  std::optional<size_t> leader;
  std::vector<Standing> standings;      // index = contender
  std::vector<size_t> still_undecided;  // fastest first: alive, verdict UNDECIDED; run them with the leader
  std::vector<size_t> eliminated;       // ascending
  // The leader, when every other compared contender is eliminated.
  std::optional<size_t> winner;
  bool operator==(const Race&) const = default;
};

// O(K^2); below 1 ms at K = 256. Contenders not linked to the leader by common heats (failed, or not yet
// started) have no effect, are UNDECIDED, and stand in neither list.
Race race_state(const PairTable& table, const RankingOptions& options);

struct PairGap {  // d = log(a / b), a < b
  size_t a = 0;
  size_t b = 0;
  size_t pairs = 0;
  double gap = 0;
  Interval interval;  // level alpha/(K(K-1)/2)
  bool operator==(const PairGap&) const = default;
};

struct Place {
  // Best and worst rank (from 1) that the separations allow; ties share: all tied of five are 1-5. 0: never
  // compared.
  size_t best = 0;
  size_t worst = 0;
  std::string letters;  // tie groups, "ab"
  bool operator==(const Place&) const = default;
};

struct Ranking {
  Race race;
  std::vector<size_t> order;   // compared contenders by effect, fastest first
  std::vector<PairGap> pairs;  // all that met, a ascending, then b
  std::vector<Place> places;   // index = contender
  // Two contenders are separated when their interval excludes 0 (here or, the family being kBest, in the
  // race, where one of them leads or eliminates the other), or a chain of such intervals leads from one to
  // the other. Two share a group exactly when they are not separated (stats/ties.h).
  std::vector<std::vector<size_t>> tie_groups;
  bool operator==(const Ranking&) const = default;
};

// O(K^3) at worst, for reports: 256 contenders in well under a second.
Ranking rank(const PairTable& table, const RankingOptions& options);

}  // namespace bakeoff::stats
