#pragma once

// Signs in a pair's own data that the t e-process (stats/e_process.h) may report a difference too often. It
// assumes that the paired differences d of the heats are independent and normal; each sign is one way in
// which they are not.
//
//   Signs signs = signs_of(d_of_the_heats, steal_of_the_heats);
//   if (signs.any()) ...          // from now on the sign-flip backup (stats/sign_flip.h) must agree
//
// What a sign changes. PairTable switches the backup on for a pair at the first heat that shows a sign, and
// never off again. The backup only ever widens an interval, so a verdict that needs both kinds of evidence
// is wrong no more often than one that needs only the first: whatever chose the moment of switching, the
// level of the t e-process is kept. The gain is measured (docs/verdicts.md), not proven: a sign needs heats
// to show, and correlation between heats affects the backup too, though less.
//
// In independent normal data each sign appears at a given heat with probability of about kChanceOfASign.

#include <cstddef>
#include <optional>
#include <span>

namespace bakeoff::stats {

inline constexpr double kChanceOfASign = 0.005;

// d falls into groups: 2 or 3 groups (of at least two heats each) leave less of the sum of squares than
// normal data of this size leave with probability kChanceOfASign (simulated with a fixed seed).
struct Modes {
  size_t heats = 0;
  size_t groups = 0;
  double apart = 0;  // distance of the means of the two nearest groups, in units of d
  double left = 0;   // share of the sum of squares that remains within the groups
  bool operator==(const Modes&) const = default;
};

// A heat's d resembles that of the heat before: the lag-1 autocorrelation exceeds its normal quantile (mean
// -1/n, variance (n-2)^2/(n^2 (n-1)): Moran 1948). Negative correlation makes the t test conservative, and
// is no sign.
struct Correlation {
  size_t heats = 0;
  double lag1 = 0;
  bool operator==(const Correlation&) const = default;
};

// d changes with the share of processor time that the hypervisor took during the heat: the contenders
// suffer from it differently. Least squares; significance by Student's t on n - 2 degrees of freedom.
struct StealSlope {
  size_t heats = 0;
  double slope = 0;          // change of d per unit of the share: 1.5 = 1.5% for each percent of steal
  double correlation = 0;    // correlation of the two
  double low = 0, high = 0;  // smallest and largest share in these heats
  bool operator==(const StealSlope&) const = default;
};

// Heats of one machine of several resemble each other: the variance of the machines' means exceeds what the heats'
// own spread explains (analysis of variance, one way; F quantile). Then only what heats of one machine differ by is noise
// of these machines' mean (stats/node_intervals.h).
struct NodeSpread {
  size_t heats = 0;
  size_t nodes = 0;
  double sd = 0;     // of d between machines, beyond their heats' own spread
  double share = 0;  // of the variance of a heat's d
  bool operator==(const NodeSpread&) const = default;
};

struct Signs {
  std::optional<NodeSpread> nodes = {};
  std::optional<Modes> modes = {};
  std::optional<Correlation> correlation = {};
  std::optional<StealSlope> steal = {};
  bool any() const { return nodes || modes || correlation || steal; }
  // Adds the signs that `later` heats show; a sign once seen stays.
  void update(const Signs& later);
  bool operator==(const Signs&) const = default;
};

// d: one value for each heat, in order. steal: the share of each heat, 0 to 1, if it was read; empty: never
// read. Needs at least 4 heats for modes, 6 for the others.
Signs signs_of(std::span<const double> d, std::span<const std::optional<double>> steal);
// `node`: the machine of each heat, by a number of its own. Nothing with fewer than two machines, or where none ran two
// heats.
std::optional<NodeSpread> node_spread(std::span<const double> d, std::span<const int> node);

}  // namespace bakeoff::stats
