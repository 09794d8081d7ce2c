#pragma once

// Where the level of a series changes.
//
//   const Noise noise = difference_noise(values);
//   const double penalty = 3 * std::log(n) * noise.long_run_variance();
//   std::vector<size_t> starts = pelt(values, penalty);   // {0, 37}: two segments, [0, 37) and [37, n)

#include <cstddef>
#include <span>
#include <vector>

namespace bakeoff::stats {

// Segments of constant mean by PELT (Killick, Fearnhead & Eckley 2012): the exact minimum of the sum over
// segments of [squared deviations from the segment's mean + penalty], each at least `shortest` long.
// Returns the first index of every segment, ascending, beginning with 0; empty for an empty series.
// O(n) when the number of changes grows with n, O(n^2) when there are none.
std::vector<size_t> pelt(std::span<const double> values, double penalty, size_t shortest = 5);

// An AR(1) model of noise around a level that may change a few times.
struct Noise {
  double variance = 0;
  double phi = 0;  // in [0, .95]
  // n Var(mean) for large n: variance (1 + phi)/(1 - phi).
  double long_run_variance() const { return variance * (1 + phi) / (1 - phi); }
  bool operator==(const Noise&) const = default;
};

// From differences at lags 1 and 2, which a few changes of level, or a slow drift, hardly touch:
// E(y_t - y_{t-1})^2 = 2 v (1 - phi), E(y_t - y_{t-2})^2 = 2 v (1 - phi^2), so phi is their ratio less 1
// (after Chakar, Lebarbier, Levy-Leduc & Robin 2017). Differences beyond 3 of their robust standard
// deviations are left out: they are changes of level. White noise on top of AR(1) makes phi too small. {0, 0}
// below four values.
Noise difference_noise(std::span<const double> values);

}  // namespace bakeoff::stats
