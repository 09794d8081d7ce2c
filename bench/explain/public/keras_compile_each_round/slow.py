"""Federated style rounds with a learning rate that decays every round."""
import os

os.environ["KERAS_BACKEND"] = "jax"

import time

import keras
import numpy as np

ROUNDS = 22
CLIENT_ROWS = 512

rng = np.random.default_rng(0)
truth = rng.normal(size=(20, 3))


def client_data():
    x = rng.normal(size=(CLIENT_ROWS, 20)).astype("float32")
    y = (x @ truth + 0.5 * rng.normal(size=(CLIENT_ROWS, 3))).argmax(axis=1)
    return x, y.astype("int32")


keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((20,)),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.Dense(3),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss, metrics=["accuracy"])

start = time.time()
for rnd in range(ROUNDS):
    x, y = client_data()
    lr = 0.1 * 0.95 ** rnd
    model.compile(optimizer=keras.optimizers.SGD(lr), loss=loss, metrics=["accuracy"])
    logs = model.fit(x, y, batch_size=32, epochs=1, verbose=0).history
    if rnd % 3 == 0:
        print(f"round {rnd} lr {lr:.4f} acc {logs['accuracy'][0]:.3f} {time.time() - start:.1f}s")
