#pragma once

// The meaning of an interval of d = log(contender / leader); d > 0 means that the contender is slower.
//
//   Verdict verdict = judge(evidence.interval(alpha), /*margin=*/0.02);
//   fmt::print("{}", name(verdict));   // "MATERIALLY SLOWER"
//
// The margin is relative (0.02 = 2%); on the log scale it is epsilon = log1p(margin), both ways.
//
//   MATERIALLY SLOWER  low > epsilon                      ----|----e----[   ]--
//   SLOWER             0 < low <= epsilon                 ----|--[---]---------
//   FASTER             high < 0                           -[ ]|----------------
//   SAME               -epsilon <= low, high <= epsilon   ---[|-]-e------------
//   UNDECIDED          otherwise                          --[-|----e--]--------
//
// tried in this order. An interval that excludes 0 *and* lies inside the margin is therefore SLOWER (or
// FASTER), not SAME: the direction is known. SAME would discard it and contradict the tie groups, which
// separate whenever 0 is excluded. A user for whom a gap inside the margin does not matter asks
// within_margin(). The same interval answers both questions, so asking both costs no error rate.

#include <optional>
#include <string_view>

#include "stats/interval.h"

namespace bakeoff::stats {

enum class Verdict { kUndecided, kFaster, kSame, kSlower, kMateriallySlower };

// "UNDECIDED", "FASTER", "SAME", "SLOWER", "MATERIALLY SLOWER".
std::string_view name(Verdict verdict);
// The inverse of name(); nothing for any other text.
std::optional<Verdict> verdict_of(std::string_view name);

// margin >= 0. With an interval that covers the true d with probability 1 - alpha, any verdict but UNDECIDED
// is wrong (a wrong sign or order; SAME for a gap beyond the margin) with probability at most alpha.
Verdict judge(const Interval& d, double margin);

// Whether the whole interval lies inside the margin, whatever the verdict.
bool within_margin(const Interval& d, double margin);

}  // namespace bakeoff::stats
