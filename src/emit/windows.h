#pragma once

// Numbers of the windows of convolutions and pools: one for each axis of places, or two (before, after).

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::emit {

inline bool all_are(const std::vector<int64_t>& numbers, int64_t n) {
  return std::all_of(numbers.begin(), numbers.end(), [n](int64_t k) { return k == n; });
}

// The pads before each axis, or after it.
inline std::vector<int64_t> pads_of_side(const std::vector<int64_t>& pad, bool after) {
  std::vector<int64_t> side;
  for (size_t i = after ? 1 : 0; i < pad.size(); i += 2) side.push_back(pad[i]);
  return side;
}

inline bool symmetric(const std::vector<int64_t>& pad) {
  return pads_of_side(pad, false) == pads_of_side(pad, true);
}

// Whether the pads of a convolution are those that TensorFlow calls "SAME": as many windows as strides begin in the
// input `in` (N,C,...), and of an odd number of zeros one more behind than before.
inline bool pads_as_same(const ir::Node& node, const ir::Shape& in, const ir::Shape& kernel) {
  const auto &stride = node.integers("stride"), &dilation = node.integers("dilation"),
             &pad = node.integers("pad");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t windows = (in[i + 2] + stride[i] - 1) / stride[i];
    const int64_t span = dilation[i] * (kernel[i] - 1) + 1;
    const int64_t zeros = std::max<int64_t>((windows - 1) * stride[i] + span - in[i + 2], 0);
    if (pad[2 * i] != zeros / 2 || pad[2 * i + 1] != zeros - zeros / 2) return false;
  }
  return !all_are(pad, 0);
}

// Before and after of the last axis, of the one before it, ...: the order in which torch pads.
inline std::vector<int64_t> pads_from_last(const std::vector<int64_t>& pad) {
  std::vector<int64_t> reversed;
  for (size_t axis = pad.size() / 2; axis-- > 0;)
    reversed.insert(reversed.end(), {pad[2 * axis], pad[2 * axis + 1]});
  return reversed;
}

}  // namespace bakeoff::emit
