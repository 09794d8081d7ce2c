#include "emit/network_ops.h"

#include <fmt/format.h>

#include "ir/op_table.h"

namespace bakeoff::emit {
namespace {

using ir::Node;
using ir::Op;

void print_attention(CodeWriter& out, const Graph& graph, const NetworkHelpers& texts) {
  const bool padded = any_live(graph, Op::kAttention, [](const Node& n) { return n.inputs.size() == 4; });
  const bool whole = any_live(graph, Op::kAttention, [](const Node& n) { return n.inputs.size() == 3; });
  const bool causal = any_live(graph, Op::kAttention, [](const Node& n) { return n.flag("causal"); });
  out.print(texts.attention, {{"last", !padded ? ""
                                       : whole ? ", last=None"
                                               : ", last"},
                              {"causal", causal ? ", *, causal=False" : ""}});
  const auto body = out.indent();
  if (causal) out.print(texts.causal);
  if (padded && whole) {
    out.line("if last is not None:");
    const auto given = out.indent();
    out.print(texts.padding);
  } else if (padded) {
    out.print(texts.padding);
  }
  out.print(texts.product);
}

// `bias`, `defaulted`: the parameters of the biases where all nodes have them, and where some have.
void print_recurrent(CodeWriter& out, const Graph& graph, Op op, const RecurrentHelper& text,
                     const char* bias, const char* defaulted) {
  if (!graph.has(op)) return;
  const bool with = any_live(graph, op, [](const Node& n) { return n.params.size() > 2; });
  const bool without = any_live(graph, op, [](const Node& n) { return n.params.size() == 2; });
  const bool back = any_live(graph, op, [](const Node& n) { return n.flag("reverse"); });
  out.print(text.function, {{"bias", !with     ? ""
                                     : without ? defaulted
                                               : bias},
                            {"reverse", back ? ", reverse=False" : ""},
                            {"order", back ? text.order : ""},
                            {"gates", with ? text.biased_gates : text.gates},
                            {"hidden", with ? " + bias_hh" : ""}});
  out.blank(2);
}

}  // namespace

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

void print_network_helpers(CodeWriter& out, const Graph& graph, const NetworkHelpers& texts) {
  if (graph.has(Op::kLrn)) {
    out.print(texts.lrn);
    out.blank(2);
  }
  if (graph.has(Op::kAttention)) {
    print_attention(out, graph, texts);
    out.blank(2);
  }
  print_recurrent(out, graph, Op::kLstm, texts.lstm, ", bias", ", bias=0.0");
  print_recurrent(out, graph, Op::kGru, texts.gru, ", bias_ih, bias_hh", ", bias_ih=0.0, bias_hh=0.0");
}

}  // namespace bakeoff::emit
