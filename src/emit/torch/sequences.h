#pragma once

// Parts of a forward pass that a person writes as nn.Sequential.
//
// The layers of a sequence are called <path>.0, <path>.3, ...: their numbers are places. What stands at the other places
// has no parameters: as many activations, pools and the like as there are places without a layer must lie between two layers,
// and each node reads the one before it alone. Those behind the last layer belong to a sequence that has others,
// or is one of a list.

#include <string>
#include <vector>

#include "emit/blocks.h"
#include "emit/emit.h"
#include "emit/torch/call.h"

namespace bakeoff::emit::torch {

struct Sequence {
  std::string path;  // relative to the stretch
  int first = 0;     // index of its first node
  int end = 0;       // index behind its last node
  bool operator==(const Sequence&) const = default;
};

// Those of a stretch, outside of its blocks, in order.
std::vector<Sequence> find_sequences(const Request& request, const std::vector<ir::Type>& types,
                                     const Stretch& stretch, const Blocks& blocks);

// The module of a node without parameters that may stand in a sequence: nn.ReLU(); an empty head for all others.
// `in`: the shape of its input.
Call module_without_parameters(const ir::Node& node, const ir::Shape& in);

}  // namespace bakeoff::emit::torch
