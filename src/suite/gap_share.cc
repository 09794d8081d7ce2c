// Why not the quotient of the two intervals' ends: x and y come from the same heats of `a`, so the worst end of one
// seldom goes with the worst end of the other, and a2 over b was measured as well. With x in X, y in Y and y - x in Z
// the allowed (x, y) are a polygon. For a fixed y > 0 the share lies between
//     max(X.low / y, 1 - Z.high / y)   and   min(X.high / y, 1 - Z.low / y).
// Each of the four is monotonous in y. So the least lower end stands at an end of Y, or where the two in the max are
// equal (y = X.low + Z.high), and the greatest upper end accordingly: three values of y are enough.

#include "suite/gap_share.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bakeoff::suite {
namespace {

constexpr double kOpen = std::numeric_limits<double>::infinity();
constexpr double kFarthest = 100;  // log ratios beyond it do not occur; it stands for an open end of the gap

struct Logs {
  double value, low, high;
  Logs mirrored() const { return {-value, -high, -low}; }
};

Logs logs_of(const Estimate& e) {
  return {std::log(e.value), e.low > 0 ? std::log(e.low) : -kOpen,
          std::isfinite(e.high) ? std::log(e.high) : kOpen};
}

}  // namespace

Estimate share_of_gap(const Estimate& switched, const Estimate& gap, const Estimate& left) {
  Logs x = logs_of(switched), y = logs_of(gap), z = logs_of(left);
  if (y.value < 0) x = x.mirrored(), y = y.mirrored(), z = z.mirrored();
  const double share = y.value > 0 ? x.value / y.value : 0;
  if (!(y.low > 0)) return {share, -kOpen, kOpen};
  double from = std::max(y.low, x.low + z.low), to = std::min({y.high, x.high + z.high, kFarthest});
  if (from > to) from = y.low, to = std::min(y.high, kFarthest);  // the three contradict: the gap's alone
  const auto low_at = [&](double at) { return std::max(x.low / at, 1 - z.high / at); };
  const auto high_at = [&](double at) { return std::min(x.high / at, 1 - z.low / at); };
  const auto within = [&](double at) { return std::isnan(at) ? from : std::clamp(at, from, to); };
  const double low = std::min({low_at(from), low_at(to), low_at(within(x.low + z.high))});
  const double high = std::max({high_at(from), high_at(to), high_at(within(x.high + z.low))});
  if (low > high) return {share, -kOpen, kOpen};  // the three contradict each other
  return {std::clamp(share, low, high), low, high};
}

}  // namespace bakeoff::suite
