#pragma once

// One small function per op, and the Python helpers that their calls need.

#include <set>
#include <string>

#include "emit/forward_printer.h"
#include "emit/op_functions.h"

namespace bakeoff::emit::tensorflow {

struct Style {
  bool explicit_norms =
      true;            // epsilon and momentum are arguments of every call, else defaults of the helpers
  bool mixed = false;  // activations are in half precision
  bool xla = false;    // the whole step is compiled by XLA, which lacks pooling with explicit padding
};

OpFunctions<ForwardPrinter> op_functions(bool xla);

// True where tf.nn.depthwise_conv2d can run the convolution and its gradient.
bool native_depthwise(const ir::Node& conv);

// The helper functions (batch_norm, ...) that the live nodes call, each followed by two blank lines.
void print_helpers(CodeWriter& out, const Graph& graph, const Style& style);

// Statements that compute the loss `variable` of `prediction` against `target`; with an empty one, return it.
void print_loss(CodeWriter& out, const ir::Node& loss, const std::string& prediction,
                const std::string& target, const std::string& variable);

// Names that the script uses itself.
std::set<std::string> reserved_names();

}  // namespace bakeoff::emit::tensorflow
