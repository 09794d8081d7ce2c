#pragma once

// The backup: evidence about the centre of d that needs no normal distribution.
//
//   SymmetricBackup backup(std::log1p(margin));
//   for (double d : pair_blocks) { evidence.add(d);  backup.add(d); }
//   Interval gap = backup.widen(evidence.interval(alpha), alpha);   // then judge() as usual
//
// The t e-process (stats/e_process.h) assumes that d is normal with one variance. It is robust to most
// noise, but not to d that can take only two values: if the worker that starts first gains 2%, d is -2% or
// +2% with equal probability; four equal signs in a row (1 in 8) have no spread at all, and the t e-process
// calls that a gap. The random order makes such noise symmetric, and the backup uses only symmetry.
//
// Bet on the sign. Let x = d - c for a centre c. If d is symmetric about some mu <= c given what came before
// (any shape, another scale in every block), then E[tanh(k x)] <= 0 for every k >= 0, because
// tanh(u + z) + tanh(u - z) = sinh(2u) / (cosh(u+z) cosh(u-z)) has the sign of u. Hence each
//
//   W_n(l) = prod_i (1 + tanh(l x_i / s_i)),   s_i = mean of |x_1| ... |x_{i-1}|  (s_1 = |x_1|),
//
// is a nonnegative supermartingale, and so is their average over l in kBets: "d lies above c" is claimed
// when it reaches 1/alpha, and is false with probability <= alpha at all looks together (Ville). For l = x
// = d at mu = c this is the likelihood ratio of the signs given the magnitudes (Efron 1969; Ramdas et al.
// 2020).
//
// How the two are combined. A verdict states that d lies beyond -epsilon, 0 or epsilon on one side or the
// other. widen() keeps a bound of the t interval only as far as the sign-flip evidence, at alpha/2 per
// side, agrees; otherwise the bound moves out to the point that is in doubt. So a verdict needs *both*
// kinds of evidence, and is wrong with probability <= alpha if *either* assumption holds: normal d, or
// symmetric d.
//
// That is a guarantee for verdicts. What the interval says about points other than these three still
// assumes normal d.
//
// What it costs. n signs give at most 2^n: 9 pairs are the fewest for alpha = 1%, 15 for 1%/45, where the t
// e-process needs 4 and 5. No test that uses symmetry alone can do with fewer than 8. Hence it is an option
// (PairTable's second argument), for machines whose A/A blocks show two modes or an order effect. O(1) per
// observation and look; about 250 bytes for each pair of contenders.

#include <array>
#include <cstddef>

#include "stats/interval.h"

namespace bakeoff::stats {

struct Bet {
  double scale;   // l: for gaps of 0.25, 0.6, 1.5 and of many standard deviations
  double weight;  // the weights sum to 1
};
inline constexpr std::array<Bet, 4> kBets = {{{0.25, 0.2}, {0.6, 0.2}, {1.5, 0.2}, {6, 0.4}}};

// One-sided evidence on either side of one centre.
class SignFlip {
 public:
  explicit SignFlip(double centre = 0) : centre_(centre) {}
  void add(double d);  // finite

  double centre() const { return centre_; }
  // log evidence that d is centred above (below) `centre`; 0 before the first observation.
  double log_e_above() const;
  double log_e_below() const;

  bool operator==(const SignFlip&) const = default;

 private:
  double centre_;
  double magnitudes_ = 0;  // sum of |x|
  double count_ = 0;
  std::array<double, kBets.size()> above_{};  // log W
  std::array<double, kBets.size()> below_{};
};

// Sign-flip evidence at the three points that verdicts depend on.
class SymmetricBackup {
 public:
  // epsilon = log1p(margin) >= 0.
  explicit SymmetricBackup(double epsilon = 0);
  void add(double d);

  // `d` widened to what the sign-flip evidence at level alpha confirms (see above). It contains `d`.
  Interval widen(const Interval& d, double alpha) const;

  bool operator==(const SymmetricBackup&) const = default;

 private:
  std::array<SignFlip, 3> points_;  // ascending
};

}  // namespace bakeoff::stats
