#pragma once

// Dropout masks from a counter hash, so that any program can compute the mask of one element by itself.

#include <cstdint>

namespace bakeoff::referee {

// True where element `index` (row-major in the canonical layout) of the output of node number `node`
// survives: u >= rate, u = top 53 bits of mix(index ^ mix(node ^ mix(step ^ mix(seed)))) / 2^53, mix of
// tensor/rng.h.
bool survives(uint64_t seed, uint64_t step, uint64_t node, uint64_t index, double rate);

}  // namespace bakeoff::referee
