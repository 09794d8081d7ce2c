#pragma once

// Evidence about the mean of paired log ratios, valid at every look.
//
//   EProcess evidence;
//   for (double d : pair_blocks) {
//     evidence.add(d);
//     if (evidence.log_e(0.0) >= std::log(1 / alpha)) return "not equal";   // stop whenever you like
//   }
//   Interval gap = evidence.interval(alpha);   // of the mean of d; expm1() of a bound is a relative gap
//
// For d_i ~ N(mu, sigma^2), both unknown, the t statistic against mu0 on nu = n - 1 degrees of freedom and a
// prior (mu - mu0)/sigma ~ N(0, g) give the Bayes factor that is free of sigma (right-Haar prior on it;
// Gronau, Ly & Wagenmakers 2020; a martingale under mu0 for every sigma: Lai 1976, Wang & Ramdas 2023)
//
//   E_n(g) = (1+ng)^(-1/2) [ (1 + t^2/nu) / (1 + t^2/((1+ng) nu)) ]^(n/2),
//
// and so is every average over g. By Ville's inequality P(some n: E_n >= 1/alpha) <= alpha when mu = mu0,
// however often one looks and for whatever reason one stops; so the set {mu0 : E_n(mu0) < 1/alpha} covers mu
// at all n together with probability >= 1 - alpha.
//
// Limit. E_n(g) < (1+ng)^((n-1)/2) however large the gap is: with g <= 4 no data decide alpha = 1% before
// five pairs. Hence the wide part of the mixture, g = 16 and 64:
//
//   n                                   2     3     4      5        6
//   sup E_n, g in {.25,1,4} alone       2.0   6.3   28     161      1,090
//   sup E_n, kMixture                   3.6   35    602    13,800   376,000
//
// so an obvious gap is decided after 3 pairs at alpha = 5%, 4 at 1%, 5 at 0.01%. The wide part costs the
// other gaps log(4/3) = 0.29 of the log(100) = 4.6 that alpha = 1% needs.
//
// Assumptions: blocks are independent, and d is normal about its mean. Simulations in this room's tests
// cover symmetric noise of other shapes (spikes, process effects, AR(1) inside a block). Coarse noise is
// not covered by default: if d can only be -q, 0 or q, four equal values look like no noise at all. In that
// case pass the step of the clock as `resolution`.

#include <array>
#include <cstddef>

#include "stats/interval.h"

namespace bakeoff::stats {

struct MixturePart {
  double g;       // variance of the standardised effect under the alternative
  double weight;  // the weights sum to 1
};
// g = 0.25, 1, 4: effects of about 0.5, 1 and 2 sd(d), on which a race spends most of its time; 1/4 each.
// The last quarter is for gaps of many sd(d).
inline constexpr std::array<MixturePart, 5> kMixture = {
    {{0.25, 0.25}, {1, 0.25}, {4, 0.25}, {16, 0.125}, {64, 0.125}}};

// log of the mixture for n observations at ratio = n (mean - mu0)^2 / M2 = t^2/nu, where M2 is the sum of
// squared deviations from the mean. It rises with the ratio, which may be infinite. 0 for n < 2: one pair
// is no evidence.
double log_mixture(size_t n, double ratio);

// The ratio at which the mixture equals 1/alpha, 0 < alpha < 1; infinite when no ratio reaches it at this n.
// Depends on n and alpha alone, so many intervals of equal n need it once.
double critical_ratio(size_t n, double alpha);

// Half-width of the confidence sequence for a mean whose estimate has known variance at most `variance` so
// far (1 / sum of 1 / variance_i for the mean with these weights), for noise that is normal, or sub-Gaussian
// with these parameters: Robbins' normal mixture with a prior of standard deviation `prior`,
//
//   sqrt(V (1 + V / prior^2) (2 log(1/alpha) + log(1 + prior^2 / V))).
//
// It holds at all looks together, with error alpha for both sides together. One value of sd s suffices for a
// gap of 3.6 s at alpha = 1% and prior = 5 s. variance, prior > 0.
double known_variance_half_width(double variance, double prior, double alpha);

// Streaming state: O(1) per observation and per look.
class EProcess {
 public:
  // d: finite.
  void add(double d);

  size_t count() const { return n_; }
  double mean() const { return mean_; }  // 0 before the first observation
  double sd() const;                     // divisor n - 1; NaN below two observations

  // n (mean - mu0)^2 / M2 = t^2 / (n - 1); not a number if all values are mu0.
  double ratio(double mu0) const { return static_cast<double>(n_) * (mean_ - mu0) * (mean_ - mu0) / m2_; }
  // log E_n against mean = mu0. `resolution` >= 0 is a lower bound of the standard deviation (divisor n):
  // it can only lower the evidence and widen the interval.
  double log_e(double mu0, double resolution = 0) const;

  // {mu0 : E_n(mu0) < 1/alpha}, with its bounds; symmetric about the mean, unbounded while no mu0 can be
  // rejected at this n.
  Interval interval(double alpha, double resolution = 0) const;
  // The same with ratio = critical_ratio(count(), alpha) supplied.
  Interval interval_at(double ratio, double resolution = 0) const;

  bool operator==(const EProcess&) const = default;

 private:
  double spread(double resolution) const;  // M2, not below n resolution^2

  size_t n_ = 0;
  double mean_ = 0;
  double m2_ = 0;
};

}  // namespace bakeoff::stats
