#pragma once

#include "emit/namer.h"
#include "emit/native/graph.h"

namespace bakeoff::emit::native {

// `types`: of ir::infer(workload); all pointers get their names from `names`.
Graph make_graph(const Request& request, const std::vector<ir::Type>& types, Namer& names);

}  // namespace bakeoff::emit::native
