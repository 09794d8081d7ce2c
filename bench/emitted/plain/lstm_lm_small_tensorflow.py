"""The language model of recipes/lstm_lm_small.toml in TensorFlow, as one would type it.

The 20 steps of a sequence are a Python loop, which `tf.function` unrolls: loops within
the graph, `tf.scan` among them, keep all states in lists for the backward pass.
"""

# mypy: ignore-errors

import tensorflow as tf
from pairing.bursts import Bursts
from tensorflow_loop import SGD, Model, cross_entropy, load_batches, train_loop

DROPOUT = 0.5


class LanguageModel(Model):
    def native(self, name, w):
        return w.T if w.ndim == 2 and name != "tokens.weight" else w

    def lstm(self, name, x):
        p = self.p
        gates = tf.tensordot(x, p[name + ".weight_ih_l0"], 1) + p[name + ".bias_ih_l0"]
        w = p[name + ".weight_hh_l0"]
        h = c = tf.zeros((x.shape[0], w.shape[0]))
        outputs = []
        for now in tf.unstack(gates, axis=1):
            i, f, g, o = tf.split(now + tf.matmul(h, w), 4, axis=-1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            outputs.append(h)
        return tf.stack(outputs, axis=1)

    def loss(self, tokens, labels):
        x = tf.nn.embedding_lookup(self.p["tokens.weight"], tokens)
        x = tf.nn.dropout(x, DROPOUT)
        x = tf.nn.dropout(self.lstm("lstm1", x), DROPOUT)
        x = tf.nn.dropout(self.lstm("lstm2", x), DROPOUT)
        return cross_entropy(self.dense("decoder", x), labels)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = LanguageModel(weights)
    optimizer = SGD(model.trainable_variables, 0.5)
    batches = load_batches(data, ("tokens", "labels"), 16)
    train_loop(bursts, model, optimizer, batches)
