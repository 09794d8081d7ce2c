#pragma once

// The time that something may take: seconds from a beginning. A command has one, and every part of it asks the
// same one how much is left.

#include <algorithm>
#include <limits>

#include "base/clock.h"

namespace bakeoff {

class TimeBudget {
 public:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  explicit TimeBudget(double seconds = kNoLimit, int64_t begin_ns = monotonic_clock().now_ns())
      : seconds_(seconds), begin_ns_(begin_ns) {}

  double seconds() const { return seconds_; }
  double spent_s() const { return seconds_since(begin_ns_); }
  // Never below 0; infinite where there is no limit.
  double left_s() const { return std::max(0.0, seconds_ - kept_s_ - spent_s()); }
  // Keeps a part of it for what comes later: it no longer counts as left. 0 gives it back.
  void keep(double seconds) { kept_s_ = seconds; }

 private:
  double seconds_;
  int64_t begin_ns_;
  double kept_s_ = 0;
};

}  // namespace bakeoff
