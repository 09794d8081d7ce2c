#pragma once

// The ops of particular networks (LRN, attention, LSTM) as frameworks of plain functions print them: what is
// the same in JAX and TensorFlow. The text of the helpers is each framework's own.

#include "emit/forward_printer.h"

namespace bakeoff::emit {

// Python functions that the calls need. `lrn` is whole; of `attention` only the head down to the scores, with
// $last$ and $causal$ among its parameters; `lstm` has $bias$ among its parameters and $gates$.
struct NetworkHelpers {
  const char* lrn;
  const char* attention;
  const char* causal;   // statements of attention: the causal mask
  const char* padding;  // statements of attention: the padding mask
  const char* product;  // the last statement of attention
  const char* lstm;
  const char* gates;  // input times weight_ih
  const char* biased_gates;
};

// Those that live nodes need, two blank lines after each.
void print_network_helpers(CodeWriter& out, const Graph& graph, const NetworkHelpers& texts);

void lrn(ForwardPrinter& p, const ir::Node& node);
void attention(ForwardPrinter& p, const ir::Node& node);
// `add`: the framework's function, where a sum is too long for a line.
void position_embedding(ForwardPrinter& p, const char* add);
// Weights as I,O.
void lstm(ForwardPrinter& p, const std::string& weight_ih, const std::string& weight_hh);

}  // namespace bakeoff::emit
