#pragma once

// Random numbers that are the same on every platform and compiler: xoshiro256++ (Blackman & Vigna 2019)
// seeded by splitmix64, and distributions made of IEEE arithmetic only (no std:: distributions, no libm).
//
//   Rng rng(7);                       // or Rng(7, "conv1.weight"): a stream of its own for each name
//   double w = rng.uniform(-0.05, 0.05);

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace bakeoff::tensor {

// The finaliser of splitmix64: a bijection that scatters its bits. A counter hash: mix(a ^ mix(b)).
uint64_t mix(uint64_t bits);
// FNV-1a, 64 bits.
uint64_t hash(std::string_view text);

class Rng {
 public:
  explicit Rng(uint64_t seed);
  Rng(uint64_t seed, std::string_view stream) : Rng(mix(seed) ^ hash(stream)) {}

  uint64_t next();                             // 64 uniform bits
  double uniform();                            // [0, 1), 53 bits
  double uniform(double low, double high);     // [low, high)
  double normal();                             // mean 0, variance 1 (polar method)
  int64_t integer(int64_t low, int64_t high);  // low..high, both included, without bias
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::array<uint64_t, 4> state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

// A random order (Fisher & Yates).
template <typename T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(i) - 1))]);
}

}  // namespace bakeoff::tensor
