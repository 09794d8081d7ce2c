#pragma once

// Quantiles and probabilities of distributions, by Boost.Math. Its templates are instantiated here alone: they take two
// seconds to compile in each file that includes them.

#include <cstdint>

namespace bakeoff::stats {

// Below which a share `p` of the distribution lies; 0 < p < 1, degrees > 0.
double normal_quantile(double p);
double student_quantile(double degrees, double p);
double chi_squared_quantile(double degrees, double p);
double fisher_quantile(double degrees_above, double degrees_below, double p);

// The share of the distribution that lies below `t`.
double student_cdf(double degrees, double t);

// The probability of `successes` at most in `trials`, each with the probability `p`.
double binomial_cdf(int64_t successes, int64_t trials, double p);

// How many choices of `chosen` of `of` there are, rounded where a double cannot hold it.
double binomial_coefficient(unsigned of, unsigned chosen);

}  // namespace bakeoff::stats
