"""Gemma of recipes/gemma_tiny.toml in TensorFlow, as one would type it."""

# mypy: ignore-errors

import numpy as np
import tensorflow as tf
from pairing.bursts import Bursts
from tensorflow_loop import Adam, Model, cross_entropy, load_batches, train_loop

TOKENS, WIDTH, HEADS, SIZE, LAYERS = 24, 64, 4, 16, 2
ANGLES = np.outer(np.arange(TOKENS), 10_000 ** (-np.arange(0, SIZE, 2) / SIZE))
ANGLES = np.concatenate([ANGLES, ANGLES], -1).astype(np.float32)
COS, SIN = tf.constant(np.cos(ANGLES)), tf.constant(np.sin(ANGLES))
CAUSAL = tf.constant(np.triu(np.full((TOKENS, TOKENS), -1e9, np.float32), 1))


def turned(x):
    first, second = tf.split(x, 2, -1)
    return x * COS + tf.concat([-second, first], -1) * SIN


class Gemma(Model):
    def native(self, name, w):
        if "norm" in name:
            return w.ravel()
        return w.T if w.ndim == 2 and "embed" not in name else w

    def norm(self, name, x):
        x = x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6)
        return x * (1 + self.p[name + ".weight"])

    def linear(self, name, x):
        return tf.tensordot(x, self.p[name + ".weight"], 1)

    def attention(self, name, x):
        def heads(part, count):
            h = self.linear(f"{name}.{part}_proj", x)
            return tf.transpose(tf.reshape(h, (-1, TOKENS, count, SIZE)), (0, 2, 1, 3))

        q, k, v = turned(heads("q", HEADS)), turned(heads("k", 1)), heads("v", 1)
        scores = tf.matmul(q, k, transpose_b=True) * SIZE**-0.5
        h = tf.matmul(tf.nn.softmax(scores + CAUSAL), v)
        h = tf.reshape(tf.transpose(h, (0, 2, 1, 3)), (-1, TOKENS, WIDTH))
        return self.linear(name + ".o_proj", h)

    def loss(self, ids, y):
        table = self.p["model.embed_tokens.weight"]
        x = tf.nn.embedding_lookup(table, ids)
        # The row of the padding word stays as it is.
        x = tf.where((ids == 0)[..., None], tf.stop_gradient(x), x) * WIDTH**0.5
        for n in range(LAYERS):
            layer = f"model.layers.{n}"
            h = self.norm(layer + ".input_layernorm", x)
            x += self.attention(layer + ".self_attn", h)
            h = self.norm(layer + ".post_attention_layernorm", x)
            gate = tf.nn.gelu(
                self.linear(layer + ".mlp.gate_proj", h), approximate=True
            )
            h = gate * self.linear(layer + ".mlp.up_proj", h)
            x += self.linear(layer + ".mlp.down_proj", h)
        x = self.norm("model.norm", x)
        return cross_entropy(tf.tensordot(x, tf.transpose(table), 1), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = Gemma(weights)
    model.p = {name: w for name, w in model.p.items() if "rotary" not in name}
    optimizer = Adam(model.trainable_variables, 1e-4, 1e-7, decay=0.01)
    batches = load_batches(data, ("input_ids", "y"), 16)
    train_loop(bursts, model, optimizer, batches)
