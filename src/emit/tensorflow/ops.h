#pragma once

// One small function per op, and the losses.

#include <set>
#include <string>

#include "emit/forward_printer.h"
#include "emit/helpers.h"
#include "emit/op_functions.h"

namespace bakeoff::emit::tensorflow {

// `xla`: the whole step is compiled by XLA, which lacks pooling with explicit padding.
OpFunctions<ForwardPrinter> op_functions(bool xla);

// True where tf.nn.depthwise_conv2d can run the convolution and its gradient.
bool native_depthwise(const ir::Node& conv);

// No linear layer reads sequences: the helper's variant "rows".
bool linear_of_rows(const Graph& graph);

// helpers.py: what these functions call.
const Helpers& helpers();

// Statements that compute the loss `variable` of `prediction` against `target`; with an empty one, return it.
void print_loss(CodeWriter& out, const ir::Node& loss, const std::string& prediction,
                const std::string& target, const std::string& variable);

// Names that the script uses itself.
std::set<std::string> reserved_names();

}  // namespace bakeoff::emit::tensorflow
