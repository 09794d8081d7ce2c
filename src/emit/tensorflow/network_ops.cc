#include "emit/tensorflow/network_ops.h"

#include <fmt/format.h>

namespace bakeoff::emit::tensorflow {
namespace {

using ir::Node;

// A weight of a linear layer or an LSTM as I,O.
std::string stored_weight(const ForwardPrinter& p, std::string_view slot) {
  return p.stored_as_table(slot) ? fmt::format("tf.transpose({})", p.full_param(slot)) : p.full_param(slot);
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
    q, k, v = (tf.transpose(heads, (0, 2, 1, 3)) for heads in (q, k, v))
    scores = tf.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5
)";
// The sums over keys are not rounded.
constexpr const char* kMixedAttention = R"(def attention(q, k, v$last$$causal$):
    """Products are in half precision, scores and softmax in float32."""
    q, k, v = (tf.transpose(heads, (0, 2, 1, 3)) for heads in (q, k, v))
    scores = tf.cast(tf.matmul(q, k, transpose_b=True), tf.float32)
    scores = scores * q.shape[-1] ** -0.5
)";
// Half of the least number, added: a score leaves no trace in it, nor does the softmax in any gradient, and
// both masks together are a number yet. Choosing by tf.where costs three kernels more, backward.
constexpr const char* kCausal = R"(if causal:
    seen = tf.linalg.band_part(tf.ones(scores.shape[2:], scores.dtype), -1, 0)
    scores += (1 - seen) * (scores.dtype.min / 2)
)";
constexpr const char* kPadding = R"(after = tf.range(scores.shape[-1]) > last[:, None, None, None]
scores += tf.cast(after, scores.dtype) * (scores.dtype.min / 2)
)";
// Unrolled: a loop within the graph, as tf.scan makes, keeps every state in lists for the backward pass, and
// the step takes up to half as long again (docs/benchmarks.md).
constexpr const char* kLstm = R"(def lstm(x, weight_ih, weight_hh$bias$$reverse$):
    """The whole sequence from a zero state, unrolled; the gates are i, f, g, o."""
    gates = $gates$
    h = c = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    outputs = []
    for step in tf.unstack(gates, axis=1)$order$:
        i, f, g, o = tf.split(step + tf.matmul(h, weight_hh), 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    return tf.stack(outputs$order$, axis=1)
)";
// Sums over time are not rounded: the cell is in float32, and so is what the steps add to a gradient.
constexpr const char* kMixedLstm = R"(def lstm(x, weight_ih, weight_hh$bias$$reverse$):
    """The whole sequence from a zero state, unrolled; the gates are i, f, g, o.

    Products and outputs are in half precision, gates and cell in float32.
    """
    gates = $gates$
    h = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    c = tf.cast(h, tf.float32)
    outputs = []
    for step in tf.unstack(gates, axis=1)$order$:
        step = tf.cast(step + tf.matmul(h, half(weight_hh)), tf.float32)
        i, f, g, o = tf.split(step, 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.cast(tf.sigmoid(o) * tf.tanh(c), x.dtype)
        outputs.append(h)
    return tf.stack(outputs$order$, axis=1)
)";

constexpr const char* kGru = R"(def gru(x, weight_ih, weight_hh$bias$$reverse$):
    """The whole sequence from a zero state, unrolled; the gates are r, z, n."""
    gates = $gates$
    h = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    outputs = []
    for step in tf.unstack(gates, axis=1)$order$:
        xr, xz, xn = tf.split(step, 3, axis=-1)
        hr, hz, hn = tf.split(tf.matmul(h, weight_hh)$hidden$, 3, axis=-1)
        r, z = tf.sigmoid(xr + hr), tf.sigmoid(xz + hz)
        n = tf.tanh(xn + r * hn)
        h = n + z * (h - n)
        outputs.append(h)
    return tf.stack(outputs$order$, axis=1)
)";
constexpr const char* kMixedGru = R"(def gru(x, weight_ih, weight_hh$bias$$reverse$):
    """The whole sequence from a zero state, unrolled; the gates are r, z, n.

    Products and outputs are in half precision, gates and state in float32.
    """
    gates = $gates$
    h = tf.zeros((x.shape[0], weight_hh.shape[0]), tf.float32)
    outputs = []
    for step in tf.unstack(gates, axis=1)$order$:
        xr, xz, xn = tf.split(tf.cast(step, tf.float32), 3, axis=-1)
        hidden = tf.matmul(tf.cast(h, x.dtype), half(weight_hh))
        hidden = tf.cast(hidden, tf.float32)$hidden$
        hr, hz, hn = tf.split(hidden, 3, axis=-1)
        r, z = tf.sigmoid(xr + hr), tf.sigmoid(xz + hz)
        n = tf.tanh(xn + r * hn)
        h = n + z * (h - n)
        outputs.append(tf.cast(h, x.dtype))
    return tf.stack(outputs$order$, axis=1)
)";

constexpr const char* kOrder = "[:: -1 if reverse else 1]";
constexpr NetworkHelpers kHelpers = {
    .lrn = kLrn,
    .attention = kAttention,
    .causal = kCausal,
    .padding = kPadding,
    .product = "return tf.transpose(tf.matmul(tf.nn.softmax(scores), v), (0, 2, 1, 3))\n",
    .lstm = {kLstm, kOrder, "tf.tensordot(x, weight_ih, 1)", "tf.tensordot(x, weight_ih, 1) + bias"},
    .gru = {kGru, kOrder, "tf.tensordot(x, weight_ih, 1)", "tf.tensordot(x, weight_ih, 1) + bias_ih"},
};

}  // namespace

void position_embedding(ForwardPrinter& p, const Node&) { emit::position_embedding(p, "tf.add"); }

void recurrent(ForwardPrinter& p, const Node&) {
  emit::recurrent(p, stored_weight(p, "weight_ih"), stored_weight(p, "weight_hh"));
}

void print_network_helpers(CodeWriter& out, const Graph& graph, bool mixed) {
  NetworkHelpers texts = kHelpers;
  if (mixed) {
    texts.attention = kMixedAttention;
    texts.product = "return tf.transpose(tf.matmul(half(tf.nn.softmax(scores)), v), (0, 2, 1, 3))\n";
    const char* const gates = "tf.tensordot(x, half(weight_ih), 1)";
    texts.lstm = {kMixedLstm, kOrder, gates, "in_float32(tf.add, tf.tensordot(x, half(weight_ih), 1), bias)"};
    texts.gru = {kMixedGru, kOrder, gates,
                 "in_float32(tf.add, tf.tensordot(x, half(weight_ih), 1), bias_ih)"};
  }
  emit::print_network_helpers(out, graph, texts);
}

}  // namespace bakeoff::emit::tensorflow
