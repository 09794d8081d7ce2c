#pragma once

// The functions of forward()'s table for the ops of particular networks.

#include "emit/torch/forward.h"

namespace bakeoff::emit::torch {

void lrn(ForwardPrinter& p, const ir::Node& node);
void position_embedding(ForwardPrinter& p, const ir::Node& node);
void attention(ForwardPrinter& p, const ir::Node& node);
// nn.LSTM where the parameters are called as in torch, else the function lstm() of the script.
void recurrent(ForwardPrinter& p, const ir::Node& node);

}  // namespace bakeoff::emit::torch
