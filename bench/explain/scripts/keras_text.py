"""Classifies texts by an embedding and convolutions over time, with Keras."""

# mypy: ignore-errors

import argparse
import os

os.environ["KERAS_BACKEND"] = "jax"

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402

WORDS, LENGTH = 2000, 64


def corpus(count, seed=0):
    rng = np.random.default_rng(seed)
    texts = rng.integers(1, WORDS, (count, LENGTH)).astype("int32")
    return texts, rng.integers(0, 2, (count, 1)).astype("float32")


def build():
    words = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(WORDS, 32)(words)
    x = layers.Conv1D(64, 5, activation="relu")(x)
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Dense(32, activation="relu")(x)
    return keras.Model(words, layers.Dense(1)(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    keras.utils.set_random_seed(1)
    texts, labels = corpus(6400)
    model = build()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    model.fit(texts, labels, batch_size=args.batch, epochs=args.epochs, verbose=2)


if __name__ == "__main__":
    main()
