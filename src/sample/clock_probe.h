#pragma once

// The speed of a processor at this moment, if the system does not report it (a virtual machine has no
// cpufreq). It times a fixed chain of integer multiplications and additions, each of which waits for the
// one before, against the monotonic clock. An iteration takes 3 + 1 cycles on every x86-64 and AArch64 core
// of the last ten years, so the result is close to GHz; what matters is that the work is the same each
// time.

#include <cstdint>

#include "base/clock.h"
#include "sample/reading.h"

namespace bakeoff::sample {

// Runs `rounds` (>= 1) of `iterations` (>= 1) each and returns the fastest: an interruption slows one
// round, not all. Takes 2 ms with the defaults. Absent if the clock does not advance.
Reading clock_probe(const Clock& clock = monotonic_clock(), int rounds = 6, int64_t iterations = 250'000);

// The chain itself. It returns its last value, so that the compiler cannot remove it.
uint64_t dependent_chain(int64_t iterations);

}  // namespace bakeoff::sample
