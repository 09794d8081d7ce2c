#include "stats/sign_flip.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace bakeoff::stats {
namespace {

// log(1 + tanh z) = log 2 - log(1 + exp(-2z)), without overflow. Far below 0, 1 + tanh z rounds to 0, but
// its logarithm is about 2z + log 2.
double log_wager(double z) {
  const double tail = z >= 0 ? std::log1p(std::exp(-2 * z)) : -2 * z + std::log1p(std::exp(2 * z));
  return std::log(2.0) - tail;
}

double log_average(const std::array<double, kBets.size()>& logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (size_t i = 0; i < logs.size(); ++i) sum += kBets[i].weight * std::exp(logs[i] - largest);
  return largest + std::log(sum);
}

}  // namespace

void SignFlip::add(double d) {
  assert(std::isfinite(d));
  const double x = d - centre_;
  const double size = std::abs(x);
  // Known before x is, but for the first: there only its sign is used.
  const double scale = magnitudes_ > 0 ? magnitudes_ / count_ : size;
  if (size > 0) {
    for (size_t i = 0; i < kBets.size(); ++i) {
      const double z = kBets[i].scale * x / scale;
      above_[i] += log_wager(z);
      below_[i] += log_wager(-z);
    }
  }
  magnitudes_ += size;
  count_ += 1;
}

double SignFlip::log_e_above() const { return log_average(above_); }

double SignFlip::log_e_below() const { return log_average(below_); }

SymmetricBackup::SymmetricBackup(double epsilon)
    : points_{SignFlip(-epsilon), SignFlip(0), SignFlip(epsilon)} {}

void SymmetricBackup::add(double d) {
  for (SignFlip& point : points_) point.add(d);
}

Interval SymmetricBackup::widen(const Interval& d, double alpha) const {
  const double target = std::log(2 / alpha);
  Interval wide = d;
  // From the inside out, so that the farthest point in doubt decides. A bound moves just beyond its point,
  // because an interval that ends at epsilon exactly is still within the margin.
  for (size_t i = 0; i < points_.size(); ++i) {
    const SignFlip& low = points_[points_.size() - 1 - i];
    if (low.centre() <= wide.low && low.log_e_above() < target) {
      wide.low = std::nextafter(low.centre(), -kInfinity);
    }
    const SignFlip& high = points_[i];
    if (high.centre() >= wide.high && high.log_e_below() < target) {
      wide.high = std::nextafter(high.centre(), kInfinity);
    }
  }
  return wide;
}

}  // namespace bakeoff::stats
