#pragma once

// The ratio of the step times of any two ranked contenders, from the intervals of all pairs that met.
//
//   const PairRatios ratios(summary);
//   if (const auto ratio = ratios.between("jax", "torch")) ... ratio->ratio.low

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stats/ranking.h"
#include "summary/summary.h"

namespace bakeoff {

// Adds the pairs of one group; `ids`: of the contenders by their index in the ranking.
void add_pairs(const stats::Ranking& ranking, const std::vector<std::string>& ids, Summary& summary);
// Leaves out the pairs of contenders that are not ranked, or that were not timed.
void keep_pairs_of_ranked(Summary& summary);

// Keeps no reference to the summary.
class PairRatios {
 public:
  explicit PairRatios(const Summary& summary);

  // Step time of `a` over that of `b`. If the heats that both ran in do not bound it on both sides, it is the
  // product of the ratios of both to a third contender, the one with the narrowest interval (`through`): as the
  // intervals of all pairs hold together, their product holds too. Of a contender that was not timed a bound.
  // Empty: nothing links the two; contenders of different groups of precision are never linked.
  std::optional<PairRatio> between(const std::string& a, const std::string& b) const;

 private:
  struct Link {  // d = log(a / b)
    int heats = 0;
    double gap = 0;
    stats::Interval d = {};
    bool bound = false;
  };
  std::optional<Link> direct(const std::string& a, const std::string& b) const;
  std::map<std::string, std::map<std::string, Link>> links_;
};

// What an interval of log(time after / time before) says, as the verdicts of a race do; kSame: within the margin.
PairVerdict compared(const Estimate& time_ratio, double margin);

// The inverse: times as fast instead of times as long.
Estimate inverse(const Estimate& ratio);

}  // namespace bakeoff
