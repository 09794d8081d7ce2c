#pragma once

// Emitted scripts with a planted fault, which `bakeoff selftest` races. The change is appended to the
// source, so the rest is what every contender runs.

#include <string>

#include "base/result.h"

namespace bakeoff {

// Every `every`-th step (>= 2) does its work twice: exactly 1 / every more real work. For torch, tensorflow
// and jax.
Result<std::string> with_repeated_steps(const std::string& framework, const std::string& source, int every);

// A jax script without its completion barrier: jax.block_until_ready returns at once. `read`: the adapter
// reads the loss as usual, after it has read the clock; otherwise nothing waits for the work at all.
std::string without_barrier(const std::string& source, bool read);

// The small network that is raced: its step takes one or two milliseconds on one core.
std::string selftest_workload();

}  // namespace bakeoff
