"""The encoder of recipes/bert_small.toml in TensorFlow, as one would type it."""

# mypy: ignore-errors

import tensorflow as tf
from pairing.bursts import Bursts
from tensorflow_loop import Adam, Model, cross_entropy, load_batches, train_loop

WIDTH, HEADS, LAYERS = 64, 4, 2
DROPOUT = 0.1


class Bert(Model):
    def native(self, name, w):
        return w.T if w.ndim == 2 and not name.startswith("embeddings.") else w

    def norm(self, name, x):
        mean, var = tf.nn.moments(x, -1, keepdims=True)
        scale, shift = self.p[name + ".weight"], self.p[name + ".bias"]
        return tf.nn.batch_normalization(x, mean, var, shift, scale, 1e-12)

    def attention(self, name, x, mask):
        def heads(part):
            h = self.dense(f"{name}.{part}", x)
            h = tf.reshape(h, (-1, x.shape[1], HEADS, WIDTH // HEADS))
            return tf.transpose(h, (0, 2, 1, 3))

        q, k, v = heads("query"), heads("key"), heads("value")
        scores = tf.matmul(q, k, transpose_b=True) * (WIDTH // HEADS) ** -0.5
        h = tf.matmul(tf.nn.softmax(scores + mask), v)
        h = tf.reshape(tf.transpose(h, (0, 2, 1, 3)), (-1, x.shape[1], WIDTH))
        return self.dense(name + ".output", h)

    def loss(self, tokens, types, last, labels):
        p = self.p
        after = tf.range(tokens.shape[1]) > last[:, None]
        mask = tf.cast(after, tf.float32)[:, None, None] * -1e9
        x = tf.nn.embedding_lookup(p["embeddings.word.weight"], tokens)
        x += tf.nn.embedding_lookup(p["embeddings.token_type.weight"], types)
        x += p["embeddings.position.weight"][: tokens.shape[1]]
        x = tf.nn.dropout(self.norm("embeddings.norm", x), DROPOUT)
        for n in range(LAYERS):
            layer = f"encoder.{n}"
            h = self.attention(layer + ".attention", x, mask)
            x = self.norm(layer + ".attention.norm", x + tf.nn.dropout(h, DROPOUT))
            h = tf.nn.gelu(self.dense(layer + ".intermediate", x))
            h = tf.nn.dropout(self.dense(layer + ".output", h), DROPOUT)
            x = self.norm(layer + ".norm", x + h)
        x = self.norm("head.norm", tf.nn.gelu(self.dense("head.dense", x)))
        x = tf.tensordot(x, tf.transpose(p["embeddings.word.weight"]), 1)
        return cross_entropy(x + p["decoder_bias"], labels)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = Bert(weights)
    optimizer = Adam(model.trainable_variables, 1e-4, 1e-6, decay=0.01)
    batches = load_batches(data, ("tokens", "token_types", "last", "labels"), 16)
    train_loop(bursts, model, optimizer, batches)
