#pragma once

// Signs in a pair's own data that the t e-process (stats/e_process.h) may say "different" too often. It takes
// the paired differences d of the heats for independent and normal; each sign is a way in which they are not.
//
//   Signs signs = signs_of(d_of_the_heats, steal_of_the_heats);
//   if (signs.any()) ...          // from now on the sign-flip backup (stats/sign_flip.h) has to agree
//
// What a sign changes. PairTable switches the backup on for a pair at the first heat that shows a sign, and
// never off again. The backup only ever widens an interval, so a verdict that needs both kinds of evidence is
// wrong no more often than one that needs the first alone: whatever chose the moment of switching, the level
// of the t e-process stays. What is gained is measured (docs/verdicts.md), not proven: a sign needs heats to
// show, and correlation from heat to heat hurts the backup too, if less.
//
// Each sign has a chance of about kChanceOfASign to be seen at a given heat in independent normal data.

#include <cstddef>
#include <optional>
#include <span>

namespace bakeoff::stats {

inline constexpr double kChanceOfASign = 0.005;

// d falls into groups: what 2 or 3 of them (each with two heats at least) leave of the sum of squares is less
// than normal data of this size leave with probability kChanceOfASign (simulated with a fixed seed).
struct Modes {
  size_t heats = 0;
  size_t groups = 0;
  double apart = 0;  // of d: distance of the two nearest groups' means
  double left = 0;   // share of the sum of squares that is left within the groups
  bool operator==(const Modes&) const = default;
};

// A heat's d resembles the one before: lag-1 autocorrelation beyond its normal quantile (mean -1/n, variance
// (n-2)^2/(n^2 (n-1)): Moran 1948). Negative correlation makes the t careful, and is no sign.
struct Correlation {
  size_t heats = 0;
  double lag1 = 0;
  bool operator==(const Correlation&) const = default;
};

// d moves with the share of processor time that the hypervisor took during the heat: the contenders differ in
// how much they suffer from it. Least squares; significance by Student's t on n - 2 degrees of freedom.
struct StealSlope {
  size_t heats = 0;
  double slope = 0;          // of d per unit of the share: 1.5 = 1.5% for each percent of steal
  double correlation = 0;    // of the two
  double low = 0, high = 0;  // least and largest share in these heats
  bool operator==(const StealSlope&) const = default;
};

struct Signs {
  std::optional<Modes> modes = {};
  std::optional<Correlation> correlation = {};
  std::optional<StealSlope> steal = {};
  bool any() const { return modes || correlation || steal; }
  // Takes over what `later` heats show; a sign once seen stays.
  void update(const Signs& later);
  bool operator==(const Signs&) const = default;
};

// d: one value a heat, in their order. steal: the share of each heat, 0 to 1, where it was read; empty: never
// read. Nothing is seen in fewer than 4 heats (modes), 6 (the others).
Signs signs_of(std::span<const double> d, std::span<const std::optional<double>> steal);

}  // namespace bakeoff::stats
