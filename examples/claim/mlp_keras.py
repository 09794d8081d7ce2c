"""An MLP on random rows with Keras and a bare gradient tape, as an article timed it.

The article: "PyTorch takes four times as long as Keras". The rows go through the
model as one batch; its outputs are probabilities.
"""

import argparse
import time

import keras
import numpy as np
import tensorflow as tf


def make_model(deep: bool) -> keras.Model:
    layers = keras.layers
    if deep:
        return keras.Sequential(
            [
                keras.Input((100,)),
                layers.Dense(256, activation="relu"),
                layers.BatchNormalization(),
                layers.Dropout(0.5),
                layers.Dense(128, activation="relu"),
                layers.BatchNormalization(),
                layers.Dropout(0.5),
                layers.Dense(10, activation="softmax"),
            ]
        )
    return keras.Sequential(
        [
            keras.Input((100,)),
            layers.Dense(128, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    x = tf.constant(rng.standard_normal((1000, 100)), tf.float32)
    y = tf.constant(rng.integers(0, 10, 1000), tf.int32)
    model = make_model(args.deep)
    optimizer = keras.optimizers.Adam(1e-3)
    loss_of = keras.losses.SparseCategoricalCrossentropy()
    begin = time.perf_counter()
    for _ in range(args.epochs):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=False)
        )
    print(f"{time.perf_counter() - begin:.3f} s, loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
