#pragma once

// Queues before one server whose truth is known, for tests: arrivals at random, times in units of the mean
// service time.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace bakeoff::stats::testing {

// Uniform in (0, 1); the same on every machine (PCG-like, 64 bits).
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {
    for (int i = 0; i < 8; ++i) uniform();
  }
  double uniform() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    uint64_t bits = state_ ^ (state_ >> 29);
    bits *= 0xBF58476D1CE4E5B9ULL;
    bits ^= bits >> 32;
    return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  }
  double exponential() { return -std::log(uniform()); }

 private:
  uint64_t state_;
};

struct QueueTimes {
  std::vector<double> arrival, start, end;
  std::vector<double> latency() const {
    std::vector<double> all;
    for (size_t i = 0; i < end.size(); ++i) all.push_back(end[i] - arrival[i]);
    return all;
  }
};

// `load` arrivals per mean service time, from an empty queue; service of exactly 1, or exponential.
inline QueueTimes simulate(double load, int requests, bool fixed, uint64_t seed) {
  Noise noise(seed);
  QueueTimes times;
  double arrival = 0, free = 0;
  for (int i = 0; i < requests; ++i) {
    arrival += noise.exponential() / load;
    const double start = std::max(arrival, free);
    free = start + (fixed ? 1 : noise.exponential());
    times.arrival.push_back(arrival);
    times.start.push_back(start);
    times.end.push_back(free);
  }
  return times;
}

// P(latency <= t), waiting and service. M/M/1: exponential with rate 1 - load.
inline double mm1_latency_cdf(double load, double t) { return t <= 0 ? 0 : -std::expm1(-(1 - load) * t); }

// M/D/1: the wait of Erlang's formula (1909; Gross & Harris, Fundamentals of Queueing Theory, 4th ed., 5.2),
// P(wait <= w) = (1 - load) sum over k <= w of (-load (w - k))^k / k! exp(load (w - k)), and 1 of service.
inline double md1_latency_cdf(double load, double t) {
  const long double wait = static_cast<long double>(t) - 1, rho = load;
  if (wait < 0) return 0;
  long double sum = 0;
  for (int k = 0; k <= static_cast<int>(wait); ++k) {
    const long double left = rho * (wait - k);
    const long double size =
        left > 0 ? std::exp(k * std::log(left) - std::lgamma(k + 1.0L) + left) : (k == 0 ? 1 : 0);
    sum += k % 2 == 0 ? size : -size;
  }
  return static_cast<double>((1 - rho) * sum);
}

}  // namespace bakeoff::stats::testing
