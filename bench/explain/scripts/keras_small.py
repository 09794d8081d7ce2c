"""A small regression with Keras, many steps of little work."""

# mypy: ignore-errors

import argparse
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402


class Regressor(keras.Model):
    def __init__(self, width=32):
        super().__init__()
        self.hidden = keras.layers.Dense(width, activation="tanh")
        self.out = keras.layers.Dense(1)

    def call(self, x):
        return self.out(self.hidden(x))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((25600, 16)).astype("float32")
    y = np.sin(x.sum(axis=1, keepdims=True)).astype("float32")
    model = Regressor()
    model.compile(optimizer="adam", loss="mse", steps_per_execution=32)
    model.fit(x, y, batch_size=args.batch, epochs=args.epochs, verbose=2)
