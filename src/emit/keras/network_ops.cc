#include "emit/keras/network_ops.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace bakeoff::emit::keras {
namespace {

using Strings = std::vector<std::string>;

constexpr const char* kLrn = R"(def local_response_norm(x, size, alpha, beta, k):
    """Divides by a sum of squares over neighbouring channels of N, H, W, C."""
    sides = (size // 2, (size - 1) // 2)
    squares = ops.pad(ops.square(x), ((0, 0), (0, 0), (0, 0), sides))
    total = sum(squares[..., i : i + x.shape[-1]] for i in range(size))
    return x / ops.power(k + alpha * total, beta)
)";
constexpr const char* kMixedLrn = R"(def local_response_norm(x, size, alpha, beta, k):
    """Divides by a sum of squares over neighbouring channels of N, H, W, C.

    In float32; x comes and goes in half precision.
    """
    full = ops.cast(x, "float32")
    sides = (size // 2, (size - 1) // 2)
    squares = ops.pad(ops.square(full), ((0, 0), (0, 0), (0, 0), sides))
    total = sum(squares[..., i : i + x.shape[-1]] for i in range(size))
    return ops.cast(full / ops.power(k + alpha * total, beta), x.dtype)
)";
constexpr const char* kPositionEmbedding = R"(class PositionEmbedding(layers.Layer):
    """Adds a trained vector to each place of a sequence."""

    def __init__(self, rows, **kwargs):
        super().__init__(**kwargs)
        self.rows = rows

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            shape=(self.rows, input_shape[-1]), initializer="uniform", name="embeddings"
        )

    def call(self, x):
        return x + self.embeddings[: x.shape[1]]
)";
constexpr const char* kPaddingMask = R"(def padding_mask(last, keys):
    """True up to the last token of each row: N, 1, 1, keys."""
    return ops.less_equal(ops.arange(keys), ops.expand_dims(last, (1, 2, 3)))
)";
// ops.dot_product_attention is jax.nn's on that backend.
constexpr const char* kAttention = R"(def attention(q, k, v, mask=None, is_causal=False):
    """As jax.nn.dot_product_attention, whose softmax is float32 even for float64."""
    scores = ops.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
    if is_causal:
        seen = ops.tril(ops.ones((q.shape[1], k.shape[1]), dtype="bool"))
        scores = ops.where(seen, scores, float("-inf"))
    if mask is not None:
        scores = ops.where(mask, scores, float("-inf"))
    return ops.einsum("nhts,nshd->nthd", ops.softmax(scores), v)
)";
// In float16 jax.nn's has no kernel on a CPU.
constexpr const char* kMixedAttention = R"(def attention(q, k, v, mask=None, is_causal=False):
    """Products are in half precision, scores and softmax in float32."""
    scores = ops.cast(ops.einsum("nthd,nshd->nhts", q, k), "float32")
    scores = scores * q.shape[-1] ** -0.5
    if is_causal:
        seen = ops.tril(ops.ones((q.shape[1], k.shape[1]), dtype="bool"))
        scores = ops.where(seen, scores, float("-inf"))
    if mask is not None:
        scores = ops.where(mask, scores, float("-inf"))
    weights = ops.cast(ops.softmax(scores), v.dtype)
    return ops.einsum("nhts,nshd->nthd", weights, v)
)";
// Keras 2 has attention as layers only, with weights of their own or without the scale.
constexpr const char* kPaddingMask2 = R"(def padding_mask(last, keys):
    """True up to the last token of each row: N, 1, 1, keys."""
    return tf.less_equal(tf.range(keys), tf.reshape(last, (-1, 1, 1, 1)))
)";
constexpr const char* kAttention2 = R"(def attention(q, k, v, mask=None, is_causal=False):
    """Scaled dot-product attention over N, tokens, heads, width."""
    scores = tf.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
    if is_causal:
        seen = tf.ones((q.shape[1], k.shape[1]), dtype="bool")
        seen = tf.linalg.band_part(seen, -1, 0)
        scores = tf.where(seen, scores, float("-inf"))
    if mask is not None:
        scores = tf.where(mask, scores, float("-inf"))
    return tf.einsum("nhts,nshd->nthd", tf.nn.softmax(scores), v)
)";

constexpr const char* kGruCell = R"(class GRUCell(layers.Layer):
    """As layers.GRUCell, with the gates r, z, n and two biases of their own."""

    def __init__(self, units, use_bias=True, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = self.output_size = units
        self.use_bias = use_bias

    def build(self, input_shape):
        gates = 3 * self.units
        self.kernel = self.add_weight(
            shape=(input_shape[-1], gates), initializer="glorot_uniform", name="kernel"
        )
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, gates), initializer="orthogonal", name="recurrent_kernel"
        )
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(gates,), initializer="zeros", name="bias"
            )
            self.recurrent_bias = self.add_weight(
                shape=(gates,), initializer="zeros", name="recurrent_bias"
            )

    def call(self, x, states):
        h = states[0]
        from_x = ops.matmul(x, self.kernel)
        from_h = ops.matmul(h, self.recurrent_kernel)
        if self.use_bias:
            from_x, from_h = from_x + self.bias, from_h + self.recurrent_bias
        xr, xz, xn = ops.split(from_x, 3, -1)
        hr, hz, hn = ops.split(from_h, 3, -1)
        r, z = ops.sigmoid(xr + hr), ops.sigmoid(xz + hz)
        n = ops.tanh(xn + r * hn)
        h = n + z * (h - n)
        return h, [h]
)";

// 1 / sqrt(width). On TensorFlow Keras rounds a Python number to float32, also for float64; a numpy one it
// keeps.
std::string scale(int64_t width, const std::string& backend) {
  const std::string plain = fmt::format("{}**-0.5", width);
  const double value = 1 / std::sqrt(static_cast<double>(width));
  const bool exact = value == static_cast<double>(static_cast<float>(value));
  return exact || backend != "tensorflow" ? plain : fmt::format("np.float64({})", plain);
}

}  // namespace

void lrn(Printer& p, const ir::Node& node) {
  p.need_helper(p.mixed ? kMixedLrn : kLrn);
  p.assign("local_response_norm",
           {p.input(node, 0), fmt::format("size={}", node.integer("size")),
            "alpha=" + python_real(node.real("alpha")), "beta=" + python_real(node.real("beta")),
            "k=" + python_real(node.real("k"))});
}

void position_embedding(Printer& p, const ir::Node& node) {
  p.need_helper(kPositionEmbedding);
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight"))].shape;
  p.layer(node, "PositionEmbedding", {std::to_string(w[0])}, p.input(node, 0), {{"weight", "embeddings"}});
}

void attention(Printer& p, const ir::Node& node) {
  Strings arguments = {p.input(node, 0), p.input(node, 1), p.input(node, 2)};
  if (node.inputs.size() == 4) {
    p.need_helper(p.dialect.second ? kPaddingMask2 : kPaddingMask);
    const std::string keys = std::to_string(p.shape(node.inputs[1])[1]);
    arguments.push_back("mask=" + p.once("mask", "padding_mask", node, 3, keys));
  }
  const bool own = p.backend == "jax" || p.dialect.second;
  if (own) {
    p.need_helper(p.dialect.second ? kAttention2 : p.mixed ? kMixedAttention : kAttention);
  } else {
    arguments.push_back("scale=" + scale(p.shape(node.inputs[0])[3], p.backend));
  }
  if (node.flag("causal")) arguments.push_back("is_causal=True");
  p.assign(own ? "attention" : "ops.dot_product_attention", arguments);
}

// Prints the layer; one that begins at the last place gives its outputs in the order of its steps.
void recurrent_layer(Printer& p, const ir::Node& node, const std::string& head, Strings arguments,
                     const std::map<std::string, std::string>& variables) {
  const bool reverse = node.flag("reverse");
  if (reverse) arguments.push_back("go_backwards=True");
  p.layer(node, head, arguments, p.input(node, 0), variables);
  if (!reverse) return;
  const std::string h = p.value_name(p.workload.output_of(p.node));
  p.out.line(p.dialect.second ? fmt::format("{0} = tf.reverse({0}, axis=[1])", h)
                              : fmt::format("{0} = ops.flip({0}, axis=1)", h));
}

// Keras has the gates i, f, c, o: the same order.
void lstm(Printer& p, const ir::Node& node) {
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight_hh"))].shape;
  Strings arguments = {std::to_string(w[1]), "return_sequences=True"};
  if (!node.has("bias")) arguments.push_back("use_bias=False");
  recurrent_layer(p, node, "layers.LSTM", arguments,
                  {{"weight_ih", "lstm_cell/kernel"},
                   {"weight_hh", "lstm_cell/recurrent_kernel"},
                   {"bias", "lstm_cell/bias"}});
}

void gru(Printer& p, const ir::Node& node) {
  p.need_helper(kGruCell);
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight_hh"))].shape;
  const std::string cell =
      fmt::format("GRUCell({}{}, name=\"gru_cell\")", w[1], node.has("bias_ih") ? "" : ", use_bias=False");
  recurrent_layer(p, node, "layers.RNN", {cell, "return_sequences=True"},
                  {{"weight_ih", "gru_cell/kernel"},
                   {"weight_hh", "gru_cell/recurrent_kernel"},
                   {"bias_ih", "gru_cell/bias"},
                   {"bias_hh", "gru_cell/recurrent_bias"}});
}

}  // namespace bakeoff::emit::keras
