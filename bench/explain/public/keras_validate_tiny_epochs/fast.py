"""Curve fitting on a handful of measurements with many short epochs."""
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import time

import keras
import numpy as np

EPOCHS = 120
CHUNK = 20

rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, size=(4192, 1)).astype("float32")
y = (np.sin(2 * x) + 0.1 * rng.normal(size=x.shape)).astype("float32")
x_train, y_train = x[:96], y[:96]
x_val, y_val = x[96:], y[96:]

keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((1,)),
    keras.layers.Dense(32, activation="tanh"),
    keras.layers.Dense(32, activation="tanh"),
    keras.layers.Dense(1),
])
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="mse", metrics=["mae"])


class Progress(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.start = time.time()

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % CHUNK == 0:
            print(f"epoch {epoch + 1} loss {logs['loss']:.4f} val {logs['val_loss']:.4f} "
                  f"{time.time() - self.start:.1f}s")


model.fit(
    x_train,
    y_train,
    batch_size=32,
    epochs=EPOCHS,
    validation_data=(x_val, y_val),
    validation_freq=CHUNK,
    callbacks=[Progress()],
    verbose=0,
)
