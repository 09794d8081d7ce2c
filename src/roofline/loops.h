#pragma once

// The loops as templates over a vector type of the compiler. Internal linkage (see kernels.h).

#include <cstdint>

#include "roofline/kernels.h"

// What a register of vectors is called in a constraint of inline assembly.
#if defined(__aarch64__)
#define BAKEOFF_VECTOR "w"
#else
#define BAKEOFF_VECTOR "v"
#endif

namespace bakeoff::roofline {
namespace {

// `kChains` independent sums: enough to fill the latency of every unit. They converge to addend / (1 -
// factor), so no step is a special case of the arithmetic.
template <typename Vector, typename Scalar, int kChains>
void fma_loop(int64_t times) {
  Vector factor = Vector{} + static_cast<Scalar>(0.9990234375);
  Vector addend = Vector{} + static_cast<Scalar>(0.0625);
  asm volatile("" : "+" BAKEOFF_VECTOR(factor), "+" BAKEOFF_VECTOR(addend));
  Vector sums[kChains];
#pragma GCC unroll 32
  for (int c = 0; c < kChains; ++c) sums[c] = addend * static_cast<Scalar>(c + 1);
  for (int64_t i = 0; i < times; ++i) {
#pragma GCC unroll 32
    for (int c = 0; c < kChains; ++c) {
      sums[c] = sums[c] * factor + addend;
      // No instruction; without it clang computes two scalar chains in one vector.
      asm volatile("" : "+" BAKEOFF_VECTOR(sums[c]));
    }
  }
#pragma GCC unroll 32
  for (int c = 0; c < kChains; ++c) asm volatile("" : : BAKEOFF_VECTOR(sums[c]));
}

// `Machine` defines Vector (of doubles), Bits (the same of int64_t) and stream(double*, Vector).
template <typename Machine>
struct Streams {
  using Vector = typename Machine::Vector;
  using Bits = typename Machine::Bits;
  static constexpr int64_t kLanes = sizeof(Vector) / sizeof(double);
  static constexpr int64_t kUnroll = 8;
  static constexpr int64_t kBeside =
      64 / sizeof(Vector);  // a cache line of each array at a time: few open pages

  static Vector load(const double* from) { return *reinterpret_cast<const Vector*>(from); }
  static void store(double* to, Vector value) { *reinterpret_cast<Vector*>(to) = value; }

  // Reads two halves at the same time: a prefetcher follows each.
  static void read(const double* a, int64_t n, int64_t times) {
    Bits sums[kUnroll] = {};
    const int64_t half = n / 2;
    for (int64_t t = 0; t < times; ++t) {
      for (int64_t i = 0; i < half; i += kLanes * kUnroll / 2) {
#pragma GCC unroll 8
        for (int64_t u = 0; u < kUnroll / 2; ++u) {
          sums[u] ^= *reinterpret_cast<const Bits*>(a + i + u * kLanes);
          sums[u + kUnroll / 2] ^= *reinterpret_cast<const Bits*>(a + half + i + u * kLanes);
        }
      }
      asm volatile("" : : : "memory");
    }
#pragma GCC unroll 8
    for (int64_t u = 0; u < kUnroll; ++u) asm volatile("" : : BAKEOFF_VECTOR(sums[u]));
  }

  static void write(double* a, int64_t n, int64_t times) {
    Vector value = Vector{} + 1.5;
    for (int64_t t = 0; t < times; ++t) {
      for (int64_t i = 0; i < n; i += kLanes * kUnroll) {
#pragma GCC unroll 8
        for (int64_t u = 0; u < kUnroll; ++u) store(a + i + u * kLanes, value);
      }
      asm volatile("" : : : "memory");
    }
  }

  static void copy(double* to, const double* from, int64_t n, int64_t times) {
    for (int64_t t = 0; t < times; ++t) {
      for (int64_t i = 0; i < n; i += kLanes * kBeside) {
#pragma GCC unroll 8
        for (int64_t u = 0; u < kBeside; ++u) store(to + i + u * kLanes, load(from + i + u * kLanes));
      }
      asm volatile("" : : : "memory");
    }
  }

  template <bool kPastCaches>
  static void triad(double* a, const double* b, const double* c, int64_t n, int64_t times) {
    const Vector scale = Vector{} + 0.5;
    for (int64_t t = 0; t < times; ++t) {
      for (int64_t i = 0; i < n; i += kLanes * kBeside) {
#pragma GCC unroll 8
        for (int64_t u = 0; u < kBeside; ++u) {
          const int64_t at = i + u * kLanes;
          const Vector value = load(b + at) + scale * load(c + at);
          if constexpr (kPastCaches)
            Machine::stream(a + at, value);
          else
            store(a + at, value);
        }
      }
      asm volatile("" : : : "memory");
    }
  }

  static constexpr StreamKernels kKernels = {read, write, copy, triad<false>, triad<true>};
};

}  // namespace
}  // namespace bakeoff::roofline
