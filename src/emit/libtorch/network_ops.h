#pragma once

// The functions of forward()'s table for the ops of particular networks. Their helpers are print_helpers()'.

#include "emit/libtorch/forward.h"

namespace bakeoff::emit::libtorch {

void lrn(ForwardPrinter& p, const ir::Node& node);
void position_embedding(ForwardPrinter& p, const ir::Node& node);
void attention(ForwardPrinter& p, const ir::Node& node);
// nn::LSTM where the parameters are called as in torch, else the program's function lstm_sequence().
void recurrent(ForwardPrinter& p, const ir::Node& node);

// The helper functions that the program needs before the model; may print nothing.
void print_helpers(CodeWriter& out, const ir::Workload& workload, const Modules& modules);

}  // namespace bakeoff::emit::libtorch
