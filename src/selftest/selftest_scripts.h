#pragma once

// Emitted scripts with a fault put in: what `bakeoff selftest` races. The edit is appended to the source, so
// that everything above it is what every contender runs.

#include <string>

#include "base/result.h"

namespace bakeoff {

// Every `every`-th step (>= 2) does its work twice: 1 / every more real work, exactly. torch, tensorflow,
// jax.
Result<std::string> with_repeated_steps(const std::string& framework, const std::string& source, int every);

// A jax script without its completion barrier: jax.block_until_ready returns at once. `read`: the loss is
// read by the adapter as usual, after it has read the clock; otherwise nothing waits for the work at all.
std::string without_barrier(const std::string& source, bool read);

// The small network that is raced: a step of it takes a millisecond or two on one core.
std::string selftest_workload();

}  // namespace bakeoff
