#pragma once

// How much of a gap between two contenders a setting explains.
//
// Contender `a` takes exp(y) times as long as `b`. The same contender with one setting switched, `a2`, is in the race
// too: a takes exp(x) times as long as a2, and a2 takes exp(y - x) times as long as b. The setting's share of the gap is
// x / y: 0 = switching it changes nothing, 1 = without it there is no gap, above 1 = the order turns, below 0 = the
// gap grows.
//
//   const Estimate share = share_of_gap(a over a2, a over b, a2 over b);

#include "table/numbers.h"

namespace bakeoff::suite {

// All three are ratios of step times with their intervals. The share's interval is the range of x / y over all x, y that
// the three allow together, so it holds wherever those hold: no further error rate, and nothing is assumed about how
// the three depend on each other. Infinite on both sides where the gap's interval holds 1.
Estimate share_of_gap(const Estimate& switched, const Estimate& gap, const Estimate& left);

}  // namespace bakeoff::suite
