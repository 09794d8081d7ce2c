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
    {8, {1.519, 1.739, 1.658, 1.926, 1.896, 2.061, 2.234, 2.446, 2.611, 2.790}},
    {10, {1.469, 1.608, 1.754, 1.906, 2.031, 2.224, 2.546, 2.676, 2.929, 3.229}},
    {12, {1.498, 1.608, 1.795, 1.918, 2.033, 2.345, 2.426, 3.108, 3.206, 3.584}},
    {16, {1.499, 1.561, 1.802, 1.982, 2.116, 2.435, 2.723, 3.041, 3.711, 4.057}},
    {24, {1.519, 1.667, 1.805, 2.057, 2.240, 2.399, 2.739, 3.480, 4.078, 5.112}},
    {32, {1.475, 1.626, 1.798, 1.879, 2.101, 2.507, 2.804, 3.352, 4.009, 5.521}},
    {48, {1.491, 1.693, 1.768, 1.947, 2.192, 2.490, 2.766, 3.281, 4.035, 5.183}},
    {64, {1.526, 1.659, 1.762, 1.969, 2.151, 2.222, 2.683, 3.036, 3.891, 4.983}},
    {96, {1.505, 1.659, 1.820, 1.906, 2.099, 2.223, 2.476, 2.864, 3.381, 4.628}},
    {128, {1.471, 1.672, 1.731, 1.831, 2.033, 2.056, 2.243, 2.574, 3.180, 5.061}},
    {192, {1.503, 1.691, 1.711, 1.835, 1.936, 1.905, 2.141, 2.254, 2.908, 4.027}},
    {256, {1.490, 1.640, 1.680, 1.817, 1.764, 1.862, 2.008, 2.293, 2.604, 3.976}},
    {384, {1.549, 1.650, 1.664, 1.711, 1.747, 1.836, 1.971, 2.146, 2.481, 3.606}},
    {512, {1.564, 1.583, 1.622, 1.742, 1.753, 1.791, 1.786, 1.963, 2.326, 3.565}},
    {1024, {1.578, 1.628, 1.630, 1.663, 1.704, 1.697, 1.793, 1.901, 2.024, 2.869}},
    {2048, {1.587, 1.672, 1.633, 1.623, 1.655, 1.665, 1.627, 1.741, 1.897, 2.439}},
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
