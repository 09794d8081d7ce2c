"""Online training: batches of events arrive one after another."""
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import time

import keras
import numpy as np

EVENTS = 250
BATCH = 64
FEATURES = 50

rng = np.random.default_rng(0)
drift = rng.normal(size=FEATURES)


def next_batch():
    global drift
    drift = drift + 0.01 * rng.normal(size=FEATURES)
    x = rng.normal(size=(BATCH, FEATURES)).astype("float32")
    y = (x @ drift > 0).astype("float32")[:, None]
    return x, y


keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((FEATURES,)),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(32, activation="relu"),
    keras.layers.Dense(1, activation="sigmoid"),
])
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy")

recent = []
start = time.time()
for event in range(EVENTS):
    x, y = next_batch()
    loss = model.train_on_batch(x, y)
    recent.append(float(loss))
    if (event + 1) % 25 == 0:
        print(f"batch {event + 1} loss {np.mean(recent[-25:]):.4f} {time.time() - start:.1f}s")
