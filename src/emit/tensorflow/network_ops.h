#pragma once

// What is this framework's own in the ops of particular networks (see emit/network_ops.h).

#include "emit/network_ops.h"

namespace bakeoff::emit::tensorflow {

void position_embedding(ForwardPrinter& p, const ir::Node& node);
void recurrent(ForwardPrinter& p, const ir::Node& node);

}  // namespace bakeoff::emit::tensorflow
