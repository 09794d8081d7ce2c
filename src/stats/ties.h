#pragma once

// Tie groups: sets of contenders of which no two are separated.
//
// Overlap is not transitive (a ~ b and b ~ c do not imply a ~ c), so a contender may be in several groups:
// the compact letter display (Piepho 2004), "torch a | keras ab | jax b".

#include <cstddef>
#include <string>
#include <vector>

namespace bakeoff::stats {

// Groups such that two contenders share one exactly if they are tied; a contender that is tied with no
// other is a group of its own. They are not the fewest possible (that is NP-hard), but none is superfluous,
// and none could include one more; for intervals of equal width they are the fewest.
//   order: the contenders to group, fastest first; indices into `tied`.
//   tied:  symmetric; tied[i][j] = i and j are not separated.
// Members are in the order given; groups in the order of their first members, then of their second ...
// O(K^2) for each group.
std::vector<std::vector<size_t>> tie_groups(const std::vector<size_t>& order,
                                            const std::vector<std::vector<bool>>& tied);

// The letters of one contender: "a", "ab"; groups 27 to 52 are "A" to "Z", later ones "(53)". Empty when it
// is in no group.
std::string letters(const std::vector<std::vector<size_t>>& groups, size_t contender);

}  // namespace bakeoff::stats
