#pragma once

// The places of its input that the op resize reads.

#include <vector>

#include "ir/workload.h"

namespace bakeoff::ir {

// An output place is (1 - share) times one place of the input and `share` times another.
struct Tap {
  int64_t low = 0, high = 0;
  double share = 0;
};

// Those of every output place along one axis of `from` places.
std::vector<Tap> resize_taps(const Node& resize, int64_t from, int64_t to);

}  // namespace bakeoff::ir
