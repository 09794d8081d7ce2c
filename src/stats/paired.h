#pragma once

// Tests whether paired differences lie above zero, using only their signs and sizes.

#include <cstdint>
#include <span>

namespace bakeoff::stats {

// One-sided p value of "d is centred at or below zero": the share of all 2^n choices of signs of d whose
// sum is at least that of d itself (Fisher's randomisation test). Exact if d is symmetric about its centre,
// whatever its shape. Up to n = 20 all choices are computed, else 100,000 are drawn with `seed` and d's own
// is added. 1 for an empty d. The smallest p for n differences is 2^-n.
double p_above_zero(std::span<const double> d, uint64_t seed = 1);

}  // namespace bakeoff::stats
