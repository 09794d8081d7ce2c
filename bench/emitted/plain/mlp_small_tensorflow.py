"""The MLP of recipes/mlp_small.toml in TensorFlow, as one would type it."""

# mypy: ignore-errors

import tensorflow as tf
from pairing.bursts import Bursts
from tensorflow_loop import Adam, Model, cross_entropy, load_batches, train_loop


class Mlp(Model):
    def loss(self, x, y):
        x = tf.nn.relu(self.dense("fc1", x))
        return cross_entropy(self.dense("fc2", x), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = Mlp(weights)
    optimizer = Adam(model.trainable_variables, 1e-3, 1e-7)
    train_loop(bursts, model, optimizer, load_batches(data, ("x", "y"), 1000))
