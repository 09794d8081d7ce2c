#pragma once

// The ops of particular networks (LRN, attention, LSTM, GRU) as frameworks of plain functions print them: what is
// the same in JAX and TensorFlow.

#include "emit/forward_printer.h"

namespace bakeoff::emit {

void lrn(ForwardPrinter& p, const ir::Node& node);
void attention(ForwardPrinter& p, const ir::Node& node);
// `add`: the framework's function, where a sum is too long for a line.
void position_embedding(ForwardPrinter& p, const char* add);
// Weights as I,O.
void recurrent(ForwardPrinter& p, const std::string& weight_ih, const std::string& weight_hh);

}  // namespace bakeoff::emit
