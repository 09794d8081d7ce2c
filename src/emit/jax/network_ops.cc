#include "emit/jax/network_ops.h"

#include <fmt/format.h>

namespace bakeoff::emit::jax {
namespace {

using ir::Node;
using ir::Op;

// A weight of a linear layer or an LSTM as I,O.
std::string stored_weight(const ForwardPrinter& p, std::string_view slot) {
  return p.param(slot) + (p.stored_as_table(slot) ? ".T" : "");
}

constexpr const char* kLrn = R"(def local_response_norm(x, *, size, alpha, beta, k):
    squares = lax.reduce_window(
        x * x,
        0.0,
        lax.add,
        window_dimensions=(1, 1, 1, size),
        window_strides=(1, 1, 1, 1),
        padding=((0, 0), (0, 0), (0, 0), (size // 2, (size - 1) // 2)),
    )
    return x / (k + alpha * squares) ** beta
)";
constexpr const char* kAttention = R"(def attention(q, k, v$last$$causal$):
    """As jax.nn.dot_product_attention, whose softmax is float32 even for float64."""
    scores = jnp.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
)";
constexpr const char* kCausal = R"(if causal:
    scores = jnp.where(jnp.tri(q.shape[1], dtype=bool), scores, -jnp.inf)
)";
constexpr const char* kPadding = R"(seen = jnp.arange(k.shape[1]) <= last[:, None, None, None]
scores = jnp.where(seen, scores, -jnp.inf)
)";
constexpr const char* kLstm = R"(def lstm(x, weight_ih, weight_hh$bias$):
    """The whole sequence from a zero state; the gates are i, f, g, o."""

    def step(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + h @ weight_hh, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    gates = $gates$
    zeros = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    _, h = lax.scan(step, (zeros, zeros), jnp.swapaxes(gates, 0, 1))
    return jnp.swapaxes(h, 0, 1)
)";

void print_attention(CodeWriter& out, const Graph& graph) {
  const bool padded = any_live(graph, Op::kAttention, [](const Node& n) { return n.inputs.size() == 4; });
  const bool whole = any_live(graph, Op::kAttention, [](const Node& n) { return n.inputs.size() == 3; });
  const bool causal = any_live(graph, Op::kAttention, [](const Node& n) { return n.flag("causal"); });
  out.print(kAttention, {{"last", !padded ? ""
                                  : whole ? ", last=None"
                                          : ", last"},
                         {"causal", causal ? ", *, causal=False" : ""}});
  const auto body = out.indent();
  if (causal) out.print(kCausal);
  if (padded && whole) {
    out.line("if last is not None:");
    const auto given = out.indent();
    out.print(kPadding);
  } else if (padded) {
    out.print(kPadding);
  }
  out.line("return jnp.einsum(\"nhts,nshd->nthd\", jax.nn.softmax(scores), v)");
}

void print_lstm(CodeWriter& out, const Graph& graph) {
  const bool with = any_live(graph, Op::kLstm, [](const Node& n) { return n.has("bias"); });
  const bool without = any_live(graph, Op::kLstm, [](const Node& n) { return !n.has("bias"); });
  out.print(kLstm, {{"bias", !with     ? ""
                             : without ? ", bias=0.0"
                                       : ", bias"},
                    {"gates", with ? "x @ weight_ih + bias" : "x @ weight_ih"}});
}

}  // namespace

void lrn(ForwardPrinter& p, const Node& node) {
  p.assign(
      "local_response_norm",
      {p.input(), fmt::format("size={}", node.integer("size")), "alpha=" + python_real(node.real("alpha")),
       "beta=" + python_real(node.real("beta")), "k=" + python_real(node.real("k"))});
}

void position_embedding(ForwardPrinter& p, const Node&) {
  const std::string rows = fmt::format("{}[:{}]", p.param("weight"), p.input_shape()[1]);
  p.assign_flat(p.input() + " + " + rows, "jnp.add", {p.input(), rows});
}

void attention(ForwardPrinter& p, const Node& node) {
  std::vector<std::string> arguments;
  for (size_t i = 0; i < node.inputs.size(); ++i) arguments.push_back(p.input(i));
  if (node.flag("causal")) arguments.push_back("causal=True");
  p.assign("attention", arguments);
}

void lstm(ForwardPrinter& p, const Node&) {
  std::vector<std::string> arguments = {p.input(), stored_weight(p, "weight_ih"),
                                        stored_weight(p, "weight_hh")};
  if (p.has("bias")) arguments.push_back(p.param("bias"));
  p.assign("lstm", arguments);
}

void print_network_helpers(CodeWriter& out, const Graph& graph) {
  if (graph.has(Op::kLrn)) {
    out.print(kLrn);
    out.blank(2);
  }
  if (graph.has(Op::kAttention)) {
    print_attention(out, graph);
    out.blank(2);
  }
  if (graph.has(Op::kLstm)) {
    print_lstm(out, graph);
    out.blank(2);
  }
}

}  // namespace bakeoff::emit::jax
