#pragma once

// One small function per op, and the Python helpers that their calls need.

#include <set>
#include <string>

#include "emit/forward_printer.h"
#include "emit/op_functions.h"

namespace bakeoff::emit::jax {

const OpFunctions<ForwardPrinter>& op_functions();

// The helper functions (conv2d, batch_norm, ...) that the live nodes call, each followed by two blank lines.
// `explicit_norms`: epsilon and momentum are arguments of every call; otherwise the helpers have defaults.
// `mixed`: activations are in half precision.
void print_helpers(CodeWriter& out, const Graph& graph, bool explicit_norms, bool mixed);

// Statements that compute the loss `variable` from `prediction` and `target`.
void print_loss(CodeWriter& out, const ir::Node& loss, const std::string& prediction,
                const std::string& target, const std::string& variable);

// Names that the script uses itself.
std::set<std::string> reserved_names();

}  // namespace bakeoff::emit::jax
