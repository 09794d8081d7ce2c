"""Denoise 1-D seismic traces: Conv1D encoder, sample-wise gate with TimeDistributed(Dense)."""
import os
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import time

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
TRACES, LENGTH, BATCH, EPOCHS = 320, 200, 16, 6
rng = np.random.default_rng(0)
t = np.arange(LENGTH) / 50
clean = np.sin(t * rng.uniform(1, 4, (TRACES, 1))) * np.exp(-((t - 4) / rng.uniform(1, 3, (TRACES, 1))) ** 2)
noisy = clean + 0.4 * rng.standard_normal(clean.shape)
x = noisy[..., None].astype("float32")
y = (np.abs(clean) > 0.2)[..., None].astype("float32")


def build():
    inp = keras.Input((LENGTH, 1))
    h = layers.Conv1D(24, 7, padding="same", activation="relu")(inp)
    h = layers.Conv1D(24, 7, padding="same", activation="relu")(h)
    h = layers.TimeDistributed(layers.Dense(32, activation="relu"))(h)
    out = layers.TimeDistributed(layers.Dense(1, activation="sigmoid"))(h)
    return keras.Model(inp, out)


class Speed(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.start = time.time()
        self.steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1

    def on_epoch_end(self, epoch, logs=None):
        ms = (time.time() - self.start) / self.steps * 1e3
        print(f"epoch {epoch + 1} loss {logs['loss']:.4f} {ms:.0f} ms/step", flush=True)


model = build()
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="binary_crossentropy")
start = time.time()
model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[Speed()])
print(f"total {time.time() - start:.1f} s")
