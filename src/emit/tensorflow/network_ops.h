#pragma once

// What is this framework's own in the ops of particular networks (see emit/network_ops.h).

#include "emit/network_ops.h"

namespace bakeoff::emit::tensorflow {

void position_embedding(ForwardPrinter& p, const ir::Node& node);
void recurrent(ForwardPrinter& p, const ir::Node& node);

// `mixed`: activations are in half precision.
void print_network_helpers(CodeWriter& out, const Graph& graph, bool mixed);

}  // namespace bakeoff::emit::tensorflow
