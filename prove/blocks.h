#pragma once

// The unit of evidence, as every rule of comparison sees it: two fresh processes on one CPU set, their step
// and burst times after warm-up. Simulated, or recorded from real A/A.
//
// File of recorded blocks: one JSON object a line, in the order in which they ran,
//   {"a": [101.2, 100.9, ...], "b": [100.8, ...], "a_bursts": [101.0, ...], "b_bursts": [...]}
// a, b: ms of each step, both of identical contenders; a_bursts, b_bursts: ms per step of each burst. Lines
// without bursts are older: there each step stands for a burst. Other keys are ignored; so are empty lines.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/result.h"
#include "prove/mutants.h"
#include "stats/noise_testing.h"

namespace bakeoff::prove {

struct Block {
  std::vector<double> a, b;                // ms a step
  std::vector<double> a_bursts, b_bursts;  // ms per step of each burst
  std::vector<double> a_steal, b_steal;    // share stolen during each burst; empty: nothing is
};

// What a race makes of the block: heat_value() of either side (stats/heat_value.h), a first.
stats::HeatResult heat_of(const Block& block);
// log of a over b by the same.
double log_ratio(const Block& block);

// Yields one block after the other, forever.
using Source = std::function<Block()>;
// Contender a is slower by the relative `slowdown`.
// `mutant`: of those in the measuring; others change nothing.
Source simulated(const stats::testing::NoiseModel& noise, double slowdown, uint64_t seed,
                 Mutant mutant = Mutant::kNone);
// Pairs of processes drawn at random from recorded blocks, sides swapped by a coin; every step of a takes
// `slowdown` more. Without replacement until all are used, then anew.
Source replayed(const std::vector<Block>& recorded, double slowdown, uint64_t seed);

// Error with the line's number when a line is no such object, a side is empty, or a time is not positive.
Result<std::vector<Block>> read_blocks(const std::filesystem::path& file);

}  // namespace bakeoff::prove
