#pragma once

// One small function per op, and the losses.

#include <set>
#include <string>

#include "emit/forward_printer.h"
#include "emit/helpers.h"
#include "emit/op_functions.h"

namespace bakeoff::emit::jax {

const OpFunctions<ForwardPrinter>& op_functions();

// Every convolution has one stride and one padding for all its axes: the helpers' variants "even" take numbers.
bool even_convolutions(const Graph& graph);

// helpers.py: what these functions call.
const Helpers& helpers();

// Statements that compute the loss `variable` from `prediction` and `target`.
void print_loss(CodeWriter& out, const ir::Node& loss, const std::string& prediction,
                const std::string& target, const std::string& variable);

// Names that the script uses itself.
std::set<std::string> reserved_names();

}  // namespace bakeoff::emit::jax
