#pragma once

// What a rule of the op table sees of a node: types of its inputs and shapes of its parameters, by slot.

#include <cassert>
#include <span>
#include <string_view>

#include "ir/workload.h"

namespace bakeoff::ir {

struct NodeView {
  const Node& node;
  std::span<const Type> inputs;
  const Workload& workload;
  // Shape of the parameter in a slot that is present.
  const Shape& param(std::string_view slot) const {
    const ParamId id = node.param(slot);
    assert(id >= 0);
    return workload.parameters[static_cast<size_t>(id)].shape;
  }
};

}  // namespace bakeoff::ir
