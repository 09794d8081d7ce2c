#pragma once

// What a race of several machines (nodes) says of d = log(a / b), where machines may differ. Two statements are made,
// and they are not the same:
//
//   of these nodes    the mean of d over the machines that ran. Only what heats of one machine differ by is noise.
//   of their kind     the mean of d over all machines of this kind that there could be, of which those that ran are a
//                     sample: each is one observation, the mean of its heats, however many it ran.
//
// Both are Student's t intervals, with the critical values of stats/boundary.h at the number of values that have as many
// degrees of freedom: a new node, and of these nodes a new heat, is one of the looks that share alpha. A further heat of
// a node that ran before is a look at their kind without a share. Where nodes differ much it shows nearly the same as
// the look before; where they differ little it is the heats' own interval that protects, because these intervals only
// ever widen that one. Simulated: claim L2 of docs/verdicts.md.

#include <cstddef>
#include <span>

#include "stats/interval.h"

namespace bakeoff::stats {

// Whom statements are about (RankingOptions::about). A race of one machine is of these nodes.
enum class About { kTheseNodes, kTheirKind };

// With fewer nobody can tell by how much nodes differ: already four leave 8 standard deviations at alpha = 1%.
inline constexpr size_t kFewestOfAKind = 4;

// d and the node of each heat. Unbounded while nothing is evidence enough.
Interval of_these_nodes(std::span<const double> d, std::span<const int> node, double alpha);
Interval of_their_kind(std::span<const double> d, std::span<const int> node, double alpha);

}  // namespace bakeoff::stats
