#pragma once

// What a cloud of step times looks like: for pictures only, nothing is decided by it.

#include <vector>

namespace bakeoff::report {

// The q-quantile (0..1) of ascending values, linear between neighbours (Hyndman and Fan 1996, type 7).
double quantile(const std::vector<double>& ascending, double q);

// The finite values, ascending.
std::vector<double> sorted_finite(const std::vector<double>& values);

// A Gaussian kernel density over `points` equally spaced places from low to high, its largest value made 1.
// Silverman's rule for the bandwidth: 0.9 min(sd, IQR / 1.34) n^(-1/5) (Silverman 1986, 3.31). The values are
// binned first, so that the cost does not depend on how many there are. Empty without values.
std::vector<double> density(const std::vector<double>& ascending, double low, double high, int points);

}  // namespace bakeoff::report
