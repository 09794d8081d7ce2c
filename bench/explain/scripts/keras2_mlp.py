"""Classifies rows of a table, with Keras 2."""

# mypy: ignore-errors

import argparse

import numpy as np
import tensorflow as tf
import tf_keras as keras


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()

    tf.random.set_seed(0)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12800, 128)).astype("float32")
    y = rng.integers(0, 10, 12800)

    model = keras.Sequential(
        [
            keras.layers.Dense(512, activation="relu", input_shape=(128,)),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(x, y, batch_size=args.batch, epochs=args.epochs, verbose=2)


if __name__ == "__main__":
    main()
