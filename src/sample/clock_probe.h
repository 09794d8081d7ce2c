#pragma once

// How fast a processor runs at this moment, where nothing tells (a virtual machine has no cpufreq): a fixed
// chain of integer multiplications and additions, each waiting for the one before, timed against the
// monotonic clock. 3 + 1 cycles an iteration on every x86-64 and AArch64 core of the last ten years, so that
// the result is close to GHz; what matters is that it is the same work each time.

#include <cstdint>

#include "base/clock.h"
#include "sample/reading.h"

namespace bakeoff::sample {

// The fastest of `rounds` (>= 1) of `iterations` (>= 1) each: an interruption makes one round slow, not all.
// 2 ms with the defaults. Absent where the clock does not advance.
Reading clock_probe(const Clock& clock = monotonic_clock(), int rounds = 6, int64_t iterations = 250'000);

// The chain itself: what it ends with, so that it cannot be left out.
uint64_t dependent_chain(int64_t iterations);

}  // namespace bakeoff::sample
