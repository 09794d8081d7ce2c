#pragma once

// The noise that the claims are tried on.

#include <string>
#include <vector>

#include "stats/noise_testing.h"

namespace bakeoff::prove {

struct Model {
  std::string name;
  stats::testing::NoiseModel noise;
  double resolution = 0;  // of d, where the clock is coarse (stats/e_process.h)
  // d is two values or three: symmetric, but as far from normal as can be. Here the backup is the claim.
  bool needs_backup = false;
};

// Those of the design and some nastier ones: heavy tails, a neighbour that comes half-way, an order effect.
const std::vector<Model>& models();

// Noise as hosts and processes were seen to make it, or worse: T14.
struct HostModel {
  std::string name;
  stats::testing::NoiseModel noise;
  // Empty: the guarantee holds, and there is a bar. Else why it does not.
  std::string open = {};
};
const std::vector<HostModel>& host_models();

// sd(d) 1.4%: identical workers with a tuned allocator, as measured.
stats::testing::NoiseModel usual();

// sd(d) over simulated pairs.
double sd_of(const Model& model, int pairs = 2000);

// sd(d) 1.4% in two bursts of two steps: the same d as `usual`, for an eighth of the time.
stats::testing::NoiseModel brisk();

// Effects of k contenders: one rival half a margin behind the best, the others evenly (in logs) from 10% to four times
// slower.
std::vector<double> wide(size_t k);
std::vector<double> shuffled(std::vector<double> effects, uint64_t seed);

}  // namespace bakeoff::prove
