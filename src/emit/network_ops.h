#pragma once

// Ops as frameworks of plain functions print them: what is the same in JAX and TensorFlow, but for the name of the
// function that they call.

#include "emit/forward_printer.h"

namespace bakeoff::emit {

// An argument by its name: "axis=1".
std::string option(const char* name, const std::string& value);

void layer_norm(ForwardPrinter& p, const ir::Node& node);
void rms_norm(ForwardPrinter& p, const ir::Node& node);
void group_norm(ForwardPrinter& p, const ir::Node& node);
void softmax(ForwardPrinter& p, const ir::Node& node, const char* function);
void transpose(ForwardPrinter& p, const ir::Node& node, const char* function);
// `brackets`: around the pads of an axis, and around all of them: "()".
void pad(ForwardPrinter& p, const ir::Node& node, const char* function, const char* brackets);
void concat(ForwardPrinter& p, const ir::Node& node, const char* function);
void join_values(ForwardPrinter& p, const char* reshape, const char* function);
void constant(ForwardPrinter& p, const ir::Node& node);
void parameter(ForwardPrinter& p, const ir::Node& node);
void lrn(ForwardPrinter& p, const ir::Node& node);
// `key`: what draws the mask of its dropout, where the framework has such a thing. `repeat`: the function that copies
// shared heads; nullptr: attention takes a single one, grouped_attention several and the rate.
void attention(ForwardPrinter& p, const ir::Node& node, const std::string& key = "",
               const char* repeat = nullptr);
// `add`: the framework's function, where a sum is too long for a line.
void position_embedding(ForwardPrinter& p, const char* add);
// Weights as I,O.
void recurrent(ForwardPrinter& p, const std::string& weight_ih, const std::string& weight_hh);

}  // namespace bakeoff::emit
