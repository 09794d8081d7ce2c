"""Learns the values of actions from what it remembers, with Keras: small calls in a loop."""

# mypy: ignore-errors

import argparse
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402


def build_model():
    return keras.Sequential(
        [
            layers.Input((8,)),
            layers.Dense(64, activation="relu"),
            layers.Dense(64, activation="relu"),
            layers.Dense(4),
        ]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()

    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    states = rng.standard_normal((10_000, 8)).astype("float32")
    actions = rng.integers(0, 4, 10_000)
    rewards = rng.standard_normal(10_000).astype("float32")
    model = build_model()
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
    for epoch in range(args.epochs):
        for _ in range(50):
            rows = rng.integers(0, 9_999, args.batch)
            after = model.predict_on_batch(states[rows + 1])
            target = np.array(model.predict_on_batch(states[rows]))
            target[np.arange(args.batch), actions[rows]] = rewards[
                rows
            ] + 0.9 * after.max(axis=1)
            model.train_on_batch(states[rows], target)
        print(f"epoch {epoch}", flush=True)


if __name__ == "__main__":
    main()
