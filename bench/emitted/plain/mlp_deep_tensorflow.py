"""The MLP of recipes/mlp_deep.toml in TensorFlow, as one would type it."""

# mypy: ignore-errors

import tensorflow as tf
from pairing.bursts import Bursts
from tensorflow_loop import Adam, Model, cross_entropy, load_batches, train_loop

DROPOUT = 0.5


class Mlp(Model):
    def loss(self, x, y):
        for layer in "12":
            x = self.batch_norm(f"bn{layer}", self.dense(f"fc{layer}", x))
            x = tf.nn.dropout(tf.nn.relu(x), DROPOUT)
        return cross_entropy(self.dense("fc3", x), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = Mlp(weights)
    optimizer = Adam(model.trainable_variables, 1e-3, 1e-7)
    train_loop(bursts, model, optimizer, load_batches(data, ("x", "y"), 1000))
