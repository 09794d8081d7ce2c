#pragma once

// Time. Intervals come from the monotonic clock, in nanoseconds; dates are for people only.

#include <cstdint>
#include <string>

namespace bakeoff {

// The seam through which supervision code sees time, so that tests can inject it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;  // monotonic; the origin means nothing
};

// CLOCK_MONOTONIC.
const Clock& monotonic_clock();
// Seconds of the monotonic clock since it showed `begin_ns`.
double seconds_since(int64_t begin_ns);

// Wall-clock time in UTC, "2026-11-21T08:00:00Z".
std::string utc_now();

}  // namespace bakeoff
