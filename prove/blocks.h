#pragma once

// The unit of evidence, as every rule of comparison sees it: two fresh processes on one CPU set, their step
// times after warm-up. Simulated, or recorded from real A/A.
//
// File of recorded blocks: one JSON object a line, in the order in which they ran,
//   {"a": [101.2, 100.9, ...], "b": [100.8, ...]}      ms a step, both of identical contenders
// Other keys are ignored; so are empty lines.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/result.h"
#include "stats/noise_testing.h"

namespace bakeoff::prove {

struct Block {
  std::vector<double> a;
  std::vector<double> b;
};

// log of the ratio of the top-trimmed means, a over b.
double log_ratio(const Block& block);

// Yields one block after the other, forever.
using Source = std::function<Block()>;
// Contender a is slower by the relative `slowdown`.
Source simulated(const stats::testing::NoiseModel& noise, double slowdown, uint64_t seed);
// Pairs of processes drawn at random from recorded blocks, sides swapped by a coin; every step of a takes
// `slowdown` more. Without replacement until all are used, then anew.
Source replayed(const std::vector<Block>& recorded, double slowdown, uint64_t seed);

// Error with the line's number when a line is no such object, a side is empty, or a time is not positive.
Result<std::vector<Block>> read_blocks(const std::filesystem::path& file);

}  // namespace bakeoff::prove
