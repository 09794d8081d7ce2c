#pragma once

// The ops of particular networks (LRN, attention, LSTM, GRU) as frameworks of plain functions print them: what is
// the same in JAX and TensorFlow. The text of the helpers is each framework's own.

#include "emit/forward_printer.h"

namespace bakeoff::emit {

// A recurrent op: a function with $bias$ and $reverse$ among its parameters, $gates$, and $order$ where it would
// begin at the last place; of a GRU $hidden$ is what adds its second bias.
struct RecurrentHelper {
  const char* function;
  const char* order;
  const char* gates;  // input times weight_ih
  const char* biased_gates;
};

// Python functions that the calls need. `lrn` is whole; of `attention` only the head down to the scores, with
// $last$ and $causal$ among its parameters.
struct NetworkHelpers {
  const char* lrn;
  const char* attention;
  const char* causal;   // statements of attention: the causal mask
  const char* padding;  // statements of attention: the padding mask
  const char* product;  // the last statement of attention
  RecurrentHelper lstm;
  RecurrentHelper gru;
};

// The helpers that live nodes need, each followed by two blank lines.
void print_network_helpers(CodeWriter& out, const Graph& graph, const NetworkHelpers& texts);

void lrn(ForwardPrinter& p, const ir::Node& node);
void attention(ForwardPrinter& p, const ir::Node& node);
// `add`: the framework's function, where a sum is too long for a line.
void position_embedding(ForwardPrinter& p, const char* add);
// Weights as I,O.
void recurrent(ForwardPrinter& p, const std::string& weight_ih, const std::string& weight_hh);

}  // namespace bakeoff::emit
