#pragma once

// A closed interval of the real line; unbounded until there is enough evidence to bound it.

#include <limits>

namespace bakeoff::stats {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Interval {
  double low = -kInfinity;
  double high = kInfinity;

  bool bounded() const { return low > -kInfinity && high < kInfinity; }
  bool contains(double value) const { return low <= value && value <= high; }
  // Every point of this interval lies in [-limit, limit].
  bool within(double limit) const { return -limit <= low && high <= limit; }
  double width() const { return high - low; }
  // What both have in common; low > high if nothing.
  Interval intersected(const Interval& other) const {
    return {low > other.low ? low : other.low, high < other.high ? high : other.high};
  }
  // What holds all of both.
  Interval spanned(const Interval& other) const {
    return {low < other.low ? low : other.low, high > other.high ? high : other.high};
  }
  // The interval of j against i if this one is of i against j.
  Interval mirrored() const { return {-high, -low}; }

  bool operator==(const Interval&) const = default;
};

}  // namespace bakeoff::stats
