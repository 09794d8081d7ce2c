"""Classifies rows of a table, with Keras."""

# mypy: ignore-errors

import argparse
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402


def build_model(features, width, classes):
    return keras.Sequential(
        [
            layers.Input((features,)),
            layers.Dense(width, activation="relu"),
            layers.Dense(width, activation="relu"),
            layers.Dense(classes),
        ]
    )


def table(rows, features, classes):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, features)).astype("float32")
    y = rng.integers(0, classes, rows)
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--width", type=int, default=512)
    args = parser.parse_args()

    keras.utils.set_random_seed(0)
    x, y = table(25600, 128, 10)
    model = build_model(128, args.width, 10)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(x, y, batch_size=args.batch, epochs=args.epochs, verbose=2)


if __name__ == "__main__":
    main()
