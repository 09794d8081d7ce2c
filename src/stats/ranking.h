#pragma once

// Which contender leads, which are out, which must run again, and finally which are tied. Pure functions of
// the paired evidence (stats/pair_table.h). The race calls race_state after every heat, the report calls
// rank.
//
//   Race race = race_state(table, {.alpha = 0.01, .margin = 0.02});
//   while (!race.still_undecided.empty() && budget.left()) {
//     run a heat of *race.leader and some of race.still_undecided;  table.add(heat);
//     race = race_state(table, options);
//   }
//   Ranking ranking = rank(table, options);
//
// Error rates. At all looks together, whatever made the loop stop, everything that is stated about any pair
// holds with probability >= 1 - alpha: eliminations, verdicts, separations, rank ranges, tie groups, the
// winner. An interval covers its own truth at the level of its pair. K = table.contenders() minus those
// left out.
//
// How alpha is shared. A contender is open until it is eliminated. All pairs of the n open ones have
// intervals at alpha/(n(n-1)/2). Those eliminated at this level leave, n falls, and so on until none leaves
// (stepping down: Holm 1979; with looks after every heat: Bartroff & Song 2014, "Sequential tests of
// multiple hypotheses controlling type I and II familywise error rates"). A pair with an eliminated member
// keeps the level at which the first of the two left. A pair that is found SAME stays in the count: only
// elimination releases alpha. All of it is computed again at every look, from the table alone.
//
// Why it holds. Let T be the truly fastest contenders, exact equals. Until the first false statement about
// them none has been eliminated, so all of T are open, and each pair of T is judged at alpha/(|T|(|T|-1)/2)
// at most. An interval at a level fails to cover its truth at some look with at most that probability
// (stats/e_process.h), and one at a smaller level contains it. So the pairs of T err with probability at
// most alpha (union bound), whatever the dependence between them and however many heats run. Three things
// are outside this proof:
// - Equals behind the fastest are judged while they are open, and leave without releasing what they have
//   used: at most alpha/(n(n-1)/2) for each pair, n being the number open at that time.
// - A contender that is slightly slower is eliminated rightly, but might have been called faster before
//   (directional errors of step-down tests; Shaffer 1980 and Guo & Romano 2015 prove them covered under
//   independence).
// - A contender just beyond the margin might have been called SAME before it was found slower.
// Simulations try them (docs/verdicts.md, T15: tiers of equals, ladders at and below the margin).

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "stats/interval.h"
#include "stats/pair_table.h"
#include "stats/verdict.h"

namespace bakeoff::stats {

struct RankingOptions {
  double alpha = 0.01;         // total, 0 < alpha < 1
  double margin = 0.02;        // relative, of the verdicts (stats/verdict.h)
  double eliminate_above = 0;  // relative: out when surely slower than another by more than this
  double resolution = 0;       // of d: the step of the clock (stats/e_process.h)
  // A promise that what restarting the processes adds to d has at most this standard deviation (log scale);
  // 0: none. With what a heat's own bursts vary by (HeatResult::variance) the variance of d is known, and
  // every interval is intersected with the one that follows (known_variance_half_width of stats/e_process.h,
  // heats weighted by their precision), at a share of alpha that is reserved for it (ceiling_share of
  // stats/level.h). A contender many ceilings
  // behind is then eliminated after one heat instead of the 4 to 8 that an unknown variance needs. Promise
  // about twice the upper bound of what identical workers show.
  double ceiling = 0;
  size_t ceiling_from = 1;  // number of a pair's promised heats from which on the promise decides anything
  // Relative. The leader is the contender with the most heats among those not eliminated whose effect lies
  // within this of the smallest, and not simply the smallest. So the lead among equals does not change from
  // heat to heat, and evidence against one leader adds up. 0: the smallest effect leads.
  double leader_band = 0;
  About about = About::kTheseNodes;  // whom statements are about, where machines may differ
  bool operator==(const RankingOptions&) const = default;
};

// One contender compared with the leader; d = log(contender / leader), > 0 = slower.
struct Standing {
  std::optional<double> effect;  // least-squares log time relative to the leader; empty: never compared
  size_t pairs = 0;              // heats shared with the leader
  double gap = 0;                // mean of d over them
  Interval interval;             // of d, at the pair's level
  StallGap stalls = {};          // whether d is that of the means or of the quicker bursts
  // The leader itself: SAME, interval [0, 0]. An eliminated contender whose interval does not decide (it
  // met this leader too seldom) is SLOWER: it is surely slower than some contender, so also than the leader
  // if that is the fastest.
  Verdict verdict = Verdict::kUndecided;
  bool within_margin = false;           // the whole interval lies inside the margin
  std::optional<size_t> eliminated_by;  // the contender that it is most surely slower than
  double behind = 0;                    // lower bound of d against that contender
  bool operator==(const Standing&) const = default;
};

struct Race {
  // The smallest effect among those not eliminated (but see leader_band); empty until two contenders have
  // met. Among equal effects: the lowest index.
  std::optional<size_t> leader;
  std::vector<Standing> standings;  // index = contender
  std::vector<size_t>
      still_undecided;             // fastest first: not eliminated and UNDECIDED; run them with the leader
  std::vector<size_t> eliminated;  // ascending
  // The leader, when every other compared contender is eliminated.
  std::optional<size_t> winner;
  bool operator==(const Race&) const = default;
};

// The number of pairs that share alpha while `open` contenders are open: n(n-1)/2, at least 1.
size_t comparisons(size_t open);

// O(K^2), and again for the open ones each time that one leaves. Contenders not linked to the leader by
// common heats (failed, or not yet started) have no effect, are UNDECIDED, and are in neither list.
Race race_state(const PairTable& table, const RankingOptions& options);

struct PairGap {  // d = log(a / b), a < b
  size_t a = 0;
  size_t b = 0;
  size_t pairs = 0;
  double gap = 0;
  Interval interval;     // at the pair's level
  StallGap stalls = {};  // see Standing
  // At alpha / (K(K-1)/2), eliminated contenders included: the intervals of all pairs, and statements derived from
  // several of them, hold together with probability >= 1 - alpha (union bound).
  Interval together = {};
  bool operator==(const PairGap&) const = default;
};

struct Place {
  // Best and worst rank (from 1) that the separations allow; ties share ranks: five tied contenders are all
  // 1-5. 0: never compared.
  size_t best = 0;
  size_t worst = 0;
  std::string letters;  // tie groups, "ab"
  bool operator==(const Place&) const = default;
};

struct Ranking {
  Race race;
  std::vector<size_t> order;   // compared contenders by effect, fastest first
  std::vector<PairGap> pairs;  // all pairs that met, by a ascending, then b
  std::vector<Place> places;   // index = contender
  // Two contenders are separated if their interval excludes 0, or if a chain of such intervals leads from
  // one to the other. Two share a group exactly if they are not separated (stats/ties.h).
  std::vector<std::vector<size_t>> tie_groups;
  bool operator==(const Ranking&) const = default;
};

// O(K^3) at worst, for reports: 256 contenders in well under a second.
Ranking rank(const PairTable& table, const RankingOptions& options);

}  // namespace bakeoff::stats
