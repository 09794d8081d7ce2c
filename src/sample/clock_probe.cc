#include "sample/clock_probe.h"

#include <algorithm>

namespace bakeoff::sample {
namespace {

constexpr double kCyclesPerIteration = 4;

// Hides a value from the optimiser, which could otherwise compute the chain at once.
inline void opaque(uint64_t& value) {
#if defined(__GNUC__)
  asm volatile("" : "+r"(value));
#else
  volatile uint64_t hidden = value;
  value = hidden;
#endif
}

}  // namespace

uint64_t dependent_chain(int64_t iterations) {
  uint64_t x = 1;
  for (int64_t i = 0; i < iterations; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    opaque(x);
  }
  return x;
}

Reading clock_probe(const Clock& clock, int rounds, int64_t iterations) {
  int64_t best = 0;
  for (int round = 0; round < rounds; ++round) {
    const int64_t begin = clock.now_ns();
    uint64_t end_value = dependent_chain(iterations);
    opaque(end_value);
    const int64_t ns = clock.now_ns() - begin;
    if (ns > 0) best = best == 0 ? ns : std::min(best, ns);
  }
  if (best == 0) return Reading::absent("the clock did not advance during the probe");
  return kCyclesPerIteration * static_cast<double>(iterations) / static_cast<double>(best);
}

}  // namespace bakeoff::sample
