#pragma once

// The functions of the op table for the ops of particular networks, and the helpers that their calls need.

#include "emit/forward_printer.h"

namespace bakeoff::emit::tensorflow {

void lrn(ForwardPrinter& p, const ir::Node& node);
void position_embedding(ForwardPrinter& p, const ir::Node& node);
void attention(ForwardPrinter& p, const ir::Node& node);
void lstm(ForwardPrinter& p, const ir::Node& node);

void print_network_helpers(CodeWriter& out, const Graph& graph);

}  // namespace bakeoff::emit::tensorflow
