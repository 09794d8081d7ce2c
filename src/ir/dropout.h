#pragma once

// Which nodes draw a mask in training.

#include <algorithm>

#include "ir/workload.h"

namespace bakeoff::ir {

inline bool drops(const Node& node) {
  return node.op == Op::kDropout || (node.op == Op::kAttention && node.real("rate") > 0);
}

inline bool drops(const Workload& workload) {
  return std::any_of(workload.nodes.begin(), workload.nodes.end(),
                     [](const Node& node) { return drops(node); });
}

}  // namespace bakeoff::ir
