#pragma once

// Time. Intervals come from the monotonic clock, in nanoseconds; dates are only for people.

#include <cstdint>
#include <string>

namespace bakeoff {

inline constexpr int64_t kSecond = 1'000'000'000;  // nanoseconds

// The interface through which supervision code reads time, so that tests can replace it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;  // monotonic; its origin has no meaning
};

// CLOCK_MONOTONIC.
const Clock& monotonic_clock();
// Seconds since the monotonic clock showed `begin_ns`.
double seconds_since(int64_t begin_ns);

// Wall-clock time in UTC, "2026-11-21T08:00:00Z".
std::string utc_now();
// The same of `seconds` since 1970.
std::string utc_text(int64_t seconds);

}  // namespace bakeoff
