#include "emit/network_ops.h"

#include <fmt/format.h>

#include "ir/op_table.h"

namespace bakeoff::emit {
using ir::Node;

void lrn(ForwardPrinter& p, const Node& node) {
  p.assign_full(
      "local_response_norm",
      {p.input(), fmt::format("size={}", node.integer("size")), "alpha=" + python_real(node.real("alpha")),
       "beta=" + python_real(node.real("beta")), "k=" + python_real(node.real("k"))});
}

void position_embedding(ForwardPrinter& p, const char* add) {
  const std::string rows = fmt::format("{}[:{}]", p.full_param("weight"), p.input_shape()[1]);
  if (p.mixed()) return p.assign_full(add, {p.input(), rows});
  p.assign_flat(p.input() + " + " + rows, add, {p.input(), rows});
}

void attention(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> arguments;
  for (size_t i = 0; i < node.inputs.size(); ++i) arguments.push_back(p.input(i));
  if (node.flag("causal")) arguments.push_back("causal=True");
  p.assign("attention", arguments);
}

void recurrent(ForwardPrinter& p, const std::string& weight_ih, const std::string& weight_hh) {
  std::vector<std::string> arguments = {p.input(), weight_ih, weight_hh};
  for (const char* bias : {"bias", "bias_ih", "bias_hh"}) {
    if (p.has(bias)) arguments.push_back(p.full_param(bias));
  }
  if (p.node().flag("reverse")) arguments.push_back("reverse=True");
  p.assign(ir::info(p.node().op).name, arguments);
}

}  // namespace bakeoff::emit
