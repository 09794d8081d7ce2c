#include "emit/tensorflow/network_ops.h"

#include <fmt/format.h>

namespace bakeoff::emit::tensorflow {
namespace {

using ir::Node;
using ir::Op;

// A weight of a linear layer or an LSTM as I,O.
std::string stored_weight(const ForwardPrinter& p, std::string_view slot) {
  return p.stored_as_table(slot) ? fmt::format("tf.transpose({})", p.param(slot)) : p.param(slot);
}

constexpr const char* kLrn = R"(def local_response_norm(x, *, size, alpha, beta, k):
    """As tf.nn.local_response_normalization, which has no float64 and odd sizes only."""
    channels = x.shape[-1]
    sides = [size // 2, (size - 1) // 2]
    squares = tf.pad(x * x, [[0, 0], [0, 0], [0, 0], sides])
    total = tf.add_n([squares[..., i : i + channels] for i in range(size)])
    return x / (k + alpha * total) ** beta
)";
constexpr const char* kAttention = R"(def attention(q, k, v$last$$causal$):
    scores = tf.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
)";
constexpr const char* kCausal = R"(if causal:
    seen = tf.linalg.band_part(tf.ones(scores.shape[2:], tf.bool), -1, 0)
    scores = tf.where(seen, scores, scores.dtype.min)
)";
constexpr const char* kPadding = R"(seen = tf.range(k.shape[1]) <= last[:, None, None, None]
scores = tf.where(seen, scores, scores.dtype.min)
)";
constexpr const char* kLstm = R"(def lstm(x, weight_ih, weight_hh$bias$):
    """The whole sequence from a zero state; the gates are i, f, g, o."""

    def step(state, gates):
        h, c = state
        i, f, g, o = tf.split(gates + tf.matmul(h, weight_hh), 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    gates = $gates$
    zeros = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    h, _ = tf.scan(step, tf.transpose(gates, (1, 0, 2)), (zeros, zeros))
    return tf.transpose(h, (1, 0, 2))
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
  out.line("return tf.einsum(\"nhts,nshd->nthd\", tf.nn.softmax(scores), v)");
}

void print_lstm(CodeWriter& out, const Graph& graph) {
  const bool with = any_live(graph, Op::kLstm, [](const Node& n) { return n.has("bias"); });
  const bool without = any_live(graph, Op::kLstm, [](const Node& n) { return !n.has("bias"); });
  out.print(kLstm,
            {{"bias", !with     ? ""
                      : without ? ", bias=0.0"
                                : ", bias"},
             {"gates", with ? "tf.tensordot(x, weight_ih, 1) + bias" : "tf.tensordot(x, weight_ih, 1)"}});
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
  p.assign_flat(p.input() + " + " + rows, "tf.add", {p.input(), rows});
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

}  // namespace bakeoff::emit::tensorflow
