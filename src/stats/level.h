#pragma once

// Intervals of d = log(a / b) at one level, from everything that a paired table knows: the t intervals of all
// looks so far (stats/boundary.h) of the estimator that decides between the two, a promised ceiling, and the
// sign-flip backup.
//
//   Level level(table, 0.01, {.ceiling = 0.1});
//   Interval d = level.of(a, b);
//
// How its alpha is shared. Either the quicker bursts or the mean decide between two contenders, by what their
// stalls show so far (PairTable::stalls). However the choice is made, it errs only if the chosen interval does:
// so nine tenths go to the quicker bursts and one tenth to the mean, and both are right with probability
// 1 - alpha. A promised ceiling has a share of alpha for itself. It is about the quicker bursts, so it
// decides nothing where the mean decides. What machines differ by only ever widens an interval: no share is theirs.

#include <cstddef>

#include "stats/interval.h"
#include "stats/pair_table.h"

namespace bakeoff::stats {

// Share of alpha of a promised ceiling. A low one decides most of a race, a high one only what is far behind.
constexpr double ceiling_share(double ceiling) {
  constexpr double kLow = 0.05;
  return ceiling <= 0 ? 0 : ceiling <= kLow ? 0.5 : 0.1;
}
inline constexpr double kMeanShare = 0.1;  // of the rest, where stalls are compared

// See RankingOptions (stats/ranking.h).
struct LevelOptions {
  double resolution = 0;
  double ceiling = 0;
  size_t ceiling_from = 1;
  About about = About::kTheseNodes;
};

class Level {
 public:
  // `table` must outlive it, and grows no further.
  Level(const PairTable& table, double alpha, const LevelOptions& options);

  Interval of(size_t a, size_t b) const;
  // False only if of(a, b) contains 0: cheaper, for the many pairs of a large field that are alike.
  bool may_differ(size_t a, size_t b) const;
  // The share of alpha of what decides between a and b.
  double alpha_of(size_t a, size_t b) const {
    return table_.mean_decides(a, b) ? mean_alpha_ : quicker_alpha_;
  }

 private:
  bool rests_on_promise(size_t a, size_t b) const {
    return options_.ceiling > 0 && !table_.mean_decides(a, b);
  }
  Interval of_heats(size_t a, size_t b) const;
  Interval by_t(size_t a, size_t b) const;
  Interval by_promise(size_t a, size_t b) const;

  const PairTable& table_;
  LevelOptions options_;
  double ceiling_alpha_, quicker_alpha_ = 0, mean_alpha_ = 0;
  double farther_;  // 2 log(1 / ceiling_alpha_)
};

}  // namespace bakeoff::stats
