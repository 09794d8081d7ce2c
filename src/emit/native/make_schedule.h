#pragma once

#include "emit/native/graph.h"

namespace bakeoff::emit::native {

// Needs the graph's values, steps and gradients.
Schedule make_schedule(const Graph& graph);

}  // namespace bakeoff::emit::native
