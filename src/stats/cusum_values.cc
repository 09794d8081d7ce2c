// Critical values of the CUSUM at alpha = 1%, computed once by CusumTable (stats/history.h): simulating
// takes one or two seconds per series, and `bakeoff history` looks at many series. They fall with the
// length, towards those of a Brownian bridge, and rise with phi: a short, correlated series looks like one
// that has changed.

#include <algorithm>
#include <array>
#include <cmath>

#include "stats/history.h"

namespace bakeoff::stats {
namespace {

struct Values {
  size_t length;
  std::array<double, 10> critical;  // at phi = 0, .1 ... .9
};

// CusumTable(length) of each length: 4,000 series for every cell, so a cell is off by some 2%, where phi is large by
// 5%.
constexpr Values kValues[] = {
    {8, {2.147, 2.448, 2.747, 3.004, 3.075, 3.133, 3.560, 3.739, 3.686, 3.788}},
    {10, {1.990, 2.145, 2.376, 2.591, 2.866, 3.155, 3.336, 3.662, 3.914, 4.076}},
    {12, {1.940, 2.083, 2.436, 2.483, 2.696, 3.098, 3.265, 3.894, 3.974, 4.247}},
    {16, {1.806, 1.896, 2.210, 2.388, 2.551, 2.751, 3.326, 3.715, 4.024, 4.500}},
    {24, {1.727, 1.819, 2.032, 2.222, 2.506, 2.737, 3.024, 3.684, 4.220, 5.268}},
    {32, {1.637, 1.793, 1.960, 2.038, 2.298, 2.619, 2.958, 3.472, 4.164, 5.557}},
    {48, {1.607, 1.773, 1.887, 2.076, 2.376, 2.558, 2.803, 3.316, 4.146, 5.238}},
    {64, {1.622, 1.763, 1.862, 2.035, 2.204, 2.306, 2.769, 3.125, 3.893, 4.983}},
    {96, {1.579, 1.736, 1.900, 1.957, 2.144, 2.288, 2.523, 2.898, 3.381, 4.681}},
    {128, {1.550, 1.743, 1.768, 1.906, 2.072, 2.123, 2.323, 2.577, 3.180, 5.061}},
    {192, {1.546, 1.761, 1.771, 1.863, 1.983, 1.921, 2.150, 2.256, 2.908, 4.027}},
    {256, {1.573, 1.680, 1.717, 1.844, 1.799, 1.880, 2.044, 2.298, 2.604, 3.976}},
    {384, {1.610, 1.685, 1.694, 1.752, 1.797, 1.910, 1.971, 2.166, 2.487, 3.606}},
    {512, {1.630, 1.651, 1.643, 1.763, 1.789, 1.821, 1.844, 1.980, 2.339, 3.565}},
    {1024, {1.593, 1.679, 1.666, 1.699, 1.723, 1.722, 1.819, 1.924, 2.045, 2.869}},
    {2048, {1.630, 1.695, 1.669, 1.660, 1.680, 1.706, 1.676, 1.753, 1.911, 2.439}},
};

double at_phi(const Values& values, double phi) {
  const double place = std::clamp(phi * 10, 0.0, 9.0);
  const size_t low = std::min<size_t>(static_cast<size_t>(place), 8);
  const double part = place - static_cast<double>(low);
  return values.critical[low] * (1 - part) + values.critical[low + 1] * part;
}

}  // namespace

double cusum_critical(size_t n, double phi) {
  const auto above = std::ranges::find_if(kValues, [n](const Values& v) { return v.length >= n; });
  if (above == std::end(kValues)) return at_phi(kValues[std::size(kValues) - 1], phi);
  if (above == std::begin(kValues) || above->length == n) return at_phi(*above, phi);
  const auto root = [](size_t length) { return 1 / std::sqrt(static_cast<double>(length)); };
  const auto below = above - 1;
  const double part = (root(n) - root(below->length)) / (root(above->length) - root(below->length));
  return at_phi(*below, phi) * (1 - part) + at_phi(*above, phi) * part;
}

}  // namespace bakeoff::stats
