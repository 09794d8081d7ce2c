#pragma once

// The functions of forward()'s table for the ops of particular networks. Their helpers are print_helpers()'.

#include "emit/torch/forward.h"

namespace bakeoff::emit::torch {

void lrn(ForwardPrinter& p, const ir::Node& node);
void position_embedding(ForwardPrinter& p, const ir::Node& node);
void attention(ForwardPrinter& p, const ir::Node& node);
// nn.LSTM where the parameters are called as in torch, else the function lstm() of the script.
void recurrent(ForwardPrinter& p, const ir::Node& node);

// The helper functions that the script needs before the model, each with its blank lines; may print nothing.
void print_helpers(CodeWriter& out, const ir::Workload& workload, const Modules& modules);

}  // namespace bakeoff::emit::torch
