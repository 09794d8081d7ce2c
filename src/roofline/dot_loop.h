#pragma once

// The loop of instructions that multiply narrow numbers and add the products in wider lanes. Internal
// linkage (see kernels.h).

#include <cstdint>

namespace bakeoff::roofline {
namespace {

// `Dot` defines Sum, Factor, factor(byte) and step(Sum, Factor, Factor).
template <typename Dot, int kChains>
void dot_loop(int64_t times) {
  auto left = Dot::factor(0x3c), right = Dot::factor(0x11);
  asm volatile("" : "+x"(left), "+x"(right));
  typename Dot::Sum sums[kChains] = {};
  // Chains that are known to begin alike would be computed once for all.
#pragma GCC unroll 32
  for (int c = 0; c < kChains; ++c) asm volatile("" : "+v"(sums[c]));
  for (int64_t i = 0; i < times; ++i) {
#pragma GCC unroll 32
    for (int c = 0; c < kChains; ++c) {
      sums[c] = Dot::step(sums[c], left, right);
      asm volatile("" : "+v"(sums[c]));  // no instruction: each chain is seen at each step
    }
  }
#pragma GCC unroll 32
  for (int c = 0; c < kChains; ++c) asm volatile("" : : "x"(sums[c]));
}

}  // namespace
}  // namespace bakeoff::roofline
