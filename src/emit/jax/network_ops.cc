#include "emit/jax/network_ops.h"

namespace bakeoff::emit::jax {
namespace {

using ir::Node;

// A weight of a linear layer or an LSTM as I,O.
std::string stored_weight(const ForwardPrinter& p, std::string_view slot) {
  return p.full_param(slot) + (p.stored_as_table(slot) ? ".T" : "");
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
// The sums over keys are not rounded.
constexpr const char* kMixedAttention = R"(def attention(q, k, v$last$$causal$):
    """Products are in half precision, scores and softmax in float32."""
    scores = jnp.einsum("nthd,nshd->nhts", q, k).astype(jnp.float32)
    scores = scores * q.shape[-1] ** -0.5
)";
constexpr const char* kCausal = R"(if causal:
    scores = jnp.where(jnp.tri(q.shape[1], dtype=bool), scores, -jnp.inf)
)";
constexpr const char* kPadding = R"(seen = jnp.arange(k.shape[1]) <= last[:, None, None, None]
scores = jnp.where(seen, scores, -jnp.inf)
)";
constexpr const char* kLstm = R"(def lstm(x, weight_ih, weight_hh$bias$$reverse$):
    """The whole sequence from a zero state; the gates are i, f, g, o."""

    def step(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + h @ weight_hh, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    gates = $gates$
    zeros = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    _, h = lax.scan(step, (zeros, zeros), jnp.swapaxes(gates, 0, 1)$order$)
    return jnp.swapaxes(h, 0, 1)
)";
// Sums over time are not rounded: the cell is in float32, and so is what the steps add to a gradient.
constexpr const char* kMixedLstm = R"(def lstm(x, weight_ih, weight_hh$bias$$reverse$):
    """The whole sequence from a zero state; the gates are i, f, g, o.

    Products and outputs are in half precision, gates and cell in float32.
    """

    def step(state, gates):
        h, c = state
        gates = (gates + h @ half(weight_hh)).astype(jnp.float32)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = (jax.nn.sigmoid(o) * jnp.tanh(c)).astype(x.dtype)
        return (h, c), h

    gates = $gates$
    h = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    c = h.astype(jnp.float32)
    _, h = lax.scan(step, (h, c), jnp.swapaxes(gates, 0, 1)$order$)
    return jnp.swapaxes(h, 0, 1)
)";

constexpr const char* kGru = R"(def gru(x, weight_ih, weight_hh$bias$$reverse$):
    """The whole sequence from a zero state; the gates are r, z, n."""

    def step(h, gates):
        xr, xz, xn = jnp.split(gates, 3, axis=-1)
        hr, hz, hn = jnp.split(h @ weight_hh$hidden$, 3, axis=-1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * hn)
        h = n + z * (h - n)
        return h, h

    gates = $gates$
    h = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    _, h = lax.scan(step, h, jnp.swapaxes(gates, 0, 1)$order$)
    return jnp.swapaxes(h, 0, 1)
)";
constexpr const char* kMixedGru = R"(def gru(x, weight_ih, weight_hh$bias$$reverse$):
    """The whole sequence from a zero state; the gates are r, z, n.

    Products and outputs are in half precision, gates and state in float32.
    """

    def step(h, gates):
        xr, xz, xn = jnp.split(gates.astype(jnp.float32), 3, axis=-1)
        hidden = (h.astype(x.dtype) @ half(weight_hh)).astype(jnp.float32)$hidden$
        hr, hz, hn = jnp.split(hidden, 3, axis=-1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * hn)
        h = n + z * (h - n)
        return h, h.astype(x.dtype)

    gates = $gates$
    h = jnp.zeros((x.shape[0], weight_hh.shape[0]), jnp.float32)
    _, h = lax.scan(step, h, jnp.swapaxes(gates, 0, 1)$order$)
    return jnp.swapaxes(h, 0, 1)
)";

constexpr const char* kOrder = ", reverse=reverse";
constexpr NetworkHelpers kHelpers = {
    .lrn = kLrn,
    .attention = kAttention,
    .causal = kCausal,
    .padding = kPadding,
    .product = "return jnp.einsum(\"nhts,nshd->nthd\", jax.nn.softmax(scores), v)\n",
    .lstm = {kLstm, kOrder, "x @ weight_ih", "x @ weight_ih + bias"},
    .gru = {kGru, kOrder, "x @ weight_ih", "x @ weight_ih + bias_ih"},
};

}  // namespace

void position_embedding(ForwardPrinter& p, const Node&) { emit::position_embedding(p, "jnp.add"); }

void recurrent(ForwardPrinter& p, const Node&) {
  emit::recurrent(p, stored_weight(p, "weight_ih"), stored_weight(p, "weight_hh"));
}

void print_network_helpers(CodeWriter& out, const Graph& graph, bool mixed) {
  NetworkHelpers texts = kHelpers;
  if (mixed) {
    texts.attention = kMixedAttention;
    texts.product = "return jnp.einsum(\"nhts,nshd->nthd\", half(jax.nn.softmax(scores)), v)\n";
    texts.lstm = {kMixedLstm, kOrder, "x @ half(weight_ih)", "half(x @ half(weight_ih) + bias)"};
    texts.gru = {kMixedGru, kOrder, "x @ half(weight_ih)", "half(x @ half(weight_ih) + bias_ih)"};
  }
  emit::print_network_helpers(out, graph, texts);
}

}  // namespace bakeoff::emit::jax
