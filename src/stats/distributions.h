#pragma once

// Quantiles and probabilities of distributions, by Boost.Math. Its templates are instantiated here alone: they take two
// seconds to compile in each file that includes them.

namespace bakeoff::stats {

// Below which a share `p` of the distribution lies; 0 < p < 1, degrees > 0.
double normal_quantile(double p);
double student_quantile(double degrees, double p);
double chi_squared_quantile(double degrees, double p);

// The share of the distribution that lies below `t`.
double student_cdf(double degrees, double t);

}  // namespace bakeoff::stats
