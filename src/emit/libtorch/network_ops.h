#pragma once

// The functions of forward()'s table for the ops of particular networks.

#include "emit/libtorch/forward.h"

namespace bakeoff::emit::libtorch {

void lrn(ForwardPrinter& p, const ir::Node& node);
void position_embedding(ForwardPrinter& p, const ir::Node& node);
void attention(ForwardPrinter& p, const ir::Node& node);
// nn::LSTM where the parameters are called as in torch, else the program's function lstm_sequence().
void recurrent(ForwardPrinter& p, const ir::Node& node);

}  // namespace bakeoff::emit::libtorch
