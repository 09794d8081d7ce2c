#include "tensor/rng.h"

#include <bit>
#include <cassert>
#include <cmath>

namespace bakeoff::tensor {
namespace {

// ln x for x in (0, 1], from sums and products alone: x = m 2^e with m in [0.5, 1), ln m = 2
// atanh((m-1)/(m+1)).
double natural_log(double x) {
  int exponent = 0;
  const double m = std::frexp(x, &exponent);  // exact
  const double t = (m - 1) / (m + 1);
  const double square = t * t;
  double sum = 0;
  for (int k = 41; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * t * sum + exponent * 0.69314718055994530942;
}

}  // namespace

uint64_t mix(uint64_t bits) {
  bits += 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

uint64_t hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

Rng::Rng(uint64_t seed) : state_{} {
  for (size_t i = 0; i < state_.size(); ++i) state_[i] = mix(seed + i * 0x9e3779b97f4a7c15u);
}

uint64_t Rng::next() {
  auto& s = state_;
  const uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Rng::uniform(double low, double high) { return low + (high - low) * uniform(); }

double Rng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  for (;;) {
    const double u = uniform(-1, 1);
    const double v = uniform(-1, 1);
    const double s = u * u + v * v;
    if (s >= 1 || s == 0) continue;
    const double scale = std::sqrt(-2 * natural_log(s) / s);
    spare_ = v * scale;
    has_spare_ = true;
    return u * scale;
  }
}

int64_t Rng::integer(int64_t low, int64_t high) {
  assert(low <= high);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  if (range == 0) return static_cast<int64_t>(next());
  const uint64_t limit = UINT64_MAX - UINT64_MAX % range;  // a multiple of range: no bias below it
  uint64_t bits = next();
  while (bits >= limit) bits = next();
  return static_cast<int64_t>(static_cast<uint64_t>(low) + bits % range);
}

}  // namespace bakeoff::tensor
