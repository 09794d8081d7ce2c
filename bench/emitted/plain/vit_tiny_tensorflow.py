"""The vision transformer of recipes/vit_tiny.toml in TensorFlow, as one would type it."""

# mypy: ignore-errors

import tensorflow as tf
from pairing.bursts import Bursts
from tensorflow_loop import (
    Adam,
    Model,
    cross_entropy,
    load_batches,
    pictures,
    train_loop,
)

WIDTH, HEADS, LAYERS, PATCH, PLACES = 64, 4, 2, 8, 17


class ViT(Model):
    def native(self, name, w):
        return w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T if w.ndim == 2 else w

    def norm(self, name, x):
        mean, var = tf.nn.moments(x, -1, keepdims=True)
        scale, shift = self.p[name + ".weight"], self.p[name + ".bias"]
        return tf.nn.batch_normalization(x, mean, var, shift, scale, 1e-6)

    def attention(self, name, x):
        qkv = self.dense(name + ".qkv", x)
        qkv = tf.reshape(qkv, (-1, PLACES, 3, HEADS, WIDTH // HEADS))
        q, k, v = tf.unstack(tf.transpose(qkv, (2, 0, 3, 1, 4)))
        scores = tf.matmul(q, k, transpose_b=True) * (WIDTH // HEADS) ** -0.5
        h = tf.matmul(tf.nn.softmax(scores), v)
        h = tf.reshape(tf.transpose(h, (0, 2, 1, 3)), (-1, PLACES, WIDTH))
        return self.dense(name + ".proj", h)

    def loss(self, x, y):
        p = self.p
        x = tf.nn.conv2d(x, p["patch_embed.proj.weight"], PATCH, "VALID")
        x = tf.reshape(x + p["patch_embed.proj.bias"], (-1, PLACES - 1, WIDTH))
        first = tf.broadcast_to(p["cls_token"], (tf.shape(x)[0], 1, WIDTH))
        x = tf.concat([first, x], 1) + p["pos_embed"]
        for n in range(LAYERS):
            layer = f"blocks.{n}"
            x += self.attention(layer + ".attn", self.norm(layer + ".norm1", x))
            h = self.dense(layer + ".mlp.fc1", self.norm(layer + ".norm2", x))
            x += self.dense(layer + ".mlp.fc2", tf.nn.gelu(h))
        x = self.norm("norm", x)[:, 0]
        return cross_entropy(self.dense("head", x), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = ViT(weights)
    optimizer = Adam(model.trainable_variables, 1e-4, 1e-7, decay=0.01)
    batches = load_batches(data, ("x", "y"), 16, pictures)
    train_loop(bursts, model, optimizer, batches)
