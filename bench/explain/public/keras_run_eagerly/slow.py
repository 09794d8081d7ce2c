"""Sequence model for river temperature, with a masked loss."""
import os

os.environ["KERAS_BACKEND"] = "jax"

import time

import keras
import numpy as np
from keras import ops

SITES, DAYS, DRIVERS = 320, 20, 7
EPOCHS = 20

rng = np.random.default_rng(0)
drivers = rng.normal(size=(SITES, DAYS, DRIVERS)).astype("float32")
temps = np.cumsum(drivers[..., :1], axis=1) * 0.2 + 10.0
temps[rng.random(temps.shape) < 0.4] = np.nan
temps = temps.astype("float32")


def masked_rmse(y_true, y_pred):
    known = ops.logical_not(ops.isnan(y_true))
    err = ops.where(known, y_pred - ops.where(known, y_true, 0.0), 0.0)
    count = ops.maximum(ops.sum(ops.cast(known, "float32")), 1.0)
    return ops.sqrt(ops.sum(err ** 2) / count + 1e-8)


keras.utils.set_random_seed(0)
inputs = keras.Input((DAYS, DRIVERS))
h = keras.layers.Conv1D(32, 5, padding="causal", activation="tanh")(inputs)
h = keras.layers.LayerNormalization()(h)
h = keras.layers.Conv1D(32, 5, padding="causal", activation="tanh")(h)
h = keras.layers.LayerNormalization()(h)
outputs = keras.layers.Dense(1)(h)
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss=masked_rmse,
    run_eagerly=True,
)

for epoch in range(EPOCHS):
    start = time.time()
    logs = model.fit(drivers, temps, batch_size=16, epochs=1, verbose=0).history
    print(f"epoch {epoch + 1}/{EPOCHS} loss {logs['loss'][0]:.3f} - {time.time() - start:.1f}s")
