#include "ir/resize.h"

#include <algorithm>

namespace bakeoff::ir {
namespace {

// numerator / denominator, never rounded.
struct Place {
  int64_t numerator, denominator;
};

Place place_of(const std::string& coordinates, bool nearest, int64_t i, int64_t from, int64_t to) {
  if (coordinates == "align_corners") return {i * (from - 1), std::max<int64_t>(to - 1, 1)};
  if (coordinates == "asymmetric") return {i * from, to};
  return {(2 * i + 1) * from - (nearest ? 0 : to), 2 * to};
}

}  // namespace

std::vector<Tap> resize_taps(const Node& resize, int64_t from, int64_t to) {
  const bool nearest = resize.word("mode") == "nearest";
  std::vector<Tap> taps;
  for (int64_t i = 0; i < to; ++i) {
    const Place at = place_of(resize.word("coordinates"), nearest, i, from, to);
    const int64_t low = at.numerator < 0 ? 0 : at.numerator / at.denominator;
    const int64_t rest = at.numerator < 0 ? 0 : at.numerator % at.denominator;
    const double share = static_cast<double>(rest) / static_cast<double>(at.denominator);
    taps.push_back({low, std::min(low + 1, from - 1), nearest ? 0 : share});
  }
  return taps;
}

}  // namespace bakeoff::ir
