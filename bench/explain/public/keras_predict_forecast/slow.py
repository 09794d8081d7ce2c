"""LSTM that forecasts a seasonal series far ahead, feeding back its own output."""
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import time

import keras
import numpy as np

WINDOW = 24
FUTURE = 200

rng = np.random.default_rng(0)
hours = np.arange(3000)
series = np.sin(2 * np.pi * hours / 24) + 0.3 * np.sin(2 * np.pi * hours / 168)
series = (series + 0.05 * rng.normal(size=len(hours))).astype("float32")
x = np.stack([series[i:i + WINDOW] for i in range(len(series) - WINDOW)])[..., None]
y = series[WINDOW:]

keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((WINDOW, 1)),
    keras.layers.LSTM(16),
    keras.layers.Dropout(0.1),
    keras.layers.Dense(1),
])
model.compile(optimizer="adam", loss="mse")
model.fit(x, y, batch_size=128, epochs=3, verbose=2)


def forecast(history, steps):
    window = list(history[-WINDOW:])
    result = []
    for _ in range(steps):
        inputs = np.array(window, dtype="float32").reshape(1, WINDOW, 1)
        value = float(model.predict(inputs, verbose=0)[0, 0])
        result.append(value)
        window = window[1:] + [value]
        if len(result) % 20 == 0:
            print(f"{len(result)} points, {time.time() - start:.1f}s")
    return np.array(result)


start = time.time()
future = forecast(series, FUTURE)
print("forecast mean", future.mean(), "std", future.std())
