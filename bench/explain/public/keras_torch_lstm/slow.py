"""Remaining-life regression from sensor sequences, Keras 3 on the torch backend."""
import os
os.environ["KERAS_BACKEND"] = "torch"
import time

import keras
import numpy as np
import torch
from keras import layers

SEQ = 80
N_SENSORS = 10
UNITS = 48
BATCH = 32
N_TRAIN = 640
N_VAL = 64
EPOCHS = 6

torch.set_num_threads(2)


def make_engines(n, seed):
    """Random walks that drift as the engine wears out."""
    rng = np.random.default_rng(seed)
    wear = rng.uniform(0.0, 1.0, (n, 1, 1))
    t = np.linspace(0, 1, SEQ)[None, :, None]
    gain = np.linspace(0.5, 2.0, N_SENSORS)[None, None, :]
    drift = wear * gain * t ** 2 * 3.0
    noise = 0.3 * rng.normal(size=(n, SEQ, N_SENSORS)).cumsum(axis=1) / np.sqrt(SEQ)
    x = (drift + noise).astype(np.float32)
    return x, (1.0 - wear[:, 0, 0]).astype(np.float32)


def build_model():
    inputs = keras.Input((SEQ, N_SENSORS))
    x = layers.LSTM(UNITS, return_sequences=True)(inputs)
    x = layers.LSTM(UNITS)(x)
    x = layers.Dense(32, activation="relu")(x)
    outputs = layers.Dense(1)(x)
    return keras.Model(inputs, outputs)


class EpochLog(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.steps = 0
        self.t0 = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1

    def on_epoch_end(self, epoch, logs=None):
        rate = self.steps / (time.perf_counter() - self.t0)
        print(f"epoch {epoch + 1}  loss {logs['loss']:.4f}  "
              f"val_mae {logs['val_mae']:.4f}  {rate:.1f} steps/s")


def main():
    keras.utils.set_random_seed(0)
    x, y = make_engines(N_TRAIN, 0)
    x_val, y_val = make_engines(N_VAL, 1)
    model = build_model()
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mse",
                  metrics=["mae"])
    print("parameters:", model.count_params())
    start = time.perf_counter()
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0,
              validation_data=(x_val, y_val), callbacks=[EpochLog()])
    pred = model.predict(x_val[:5], verbose=0)[:, 0]
    print("truth", np.round(y_val[:5], 2), "predicted", np.round(pred, 2))
    print(f"total {time.perf_counter() - start:.1f}s")


if __name__ == "__main__":
    main()
