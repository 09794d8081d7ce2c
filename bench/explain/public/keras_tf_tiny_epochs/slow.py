import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import time

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(11)

N_POINTS = 160
N_STEPS = 1000
REPORT = 100


def make_measurements(n, rng):
    """Pseudo-data: structure functions at random (x, Q2) with noise."""
    x = 10 ** rng.uniform(-4, -0.05, size=n)
    q2 = 10 ** rng.uniform(0.3, 4, size=n)
    f2 = x**0.4 * (1 - x) ** 3 * (1 + 0.12 * np.log(q2)) + 0.05 * x**-0.15
    fl = 0.2 * f2 / (1 + 0.1 * np.log(q2))
    targets = np.stack([f2, fl], axis=1)
    targets *= 1 + 0.02 * rng.standard_normal(targets.shape)
    inputs = np.stack([x, np.log(x), np.log(q2)], axis=1)
    return inputs.astype("float32"), targets.astype("float32")


class LossReport(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.t0 = time.time()

    def on_epoch_end(self, epoch, logs=None):
        step = epoch + 1
        if step % REPORT == 0:
            print(f"step {step:5d} loss {logs['loss']:.6f} t={time.time() - self.t0:.1f}s", flush=True)


def build_model():
    return keras.Sequential(
        [
            keras.Input((3,)),
            layers.Normalization(mean=[0.2, -4.0, 5.0], variance=[0.1, 7.0, 6.0]),
            layers.Dense(256, activation="tanh"),
            layers.Dense(256, activation="tanh"),
            layers.Dense(128, activation="tanh"),
            layers.Dense(2),
        ]
    )


rng = np.random.default_rng(3)
x, y = make_measurements(N_POINTS, rng)
x_test, y_test = make_measurements(400, rng)

model = build_model()
model.compile(optimizer=keras.optimizers.Nadam(1e-3, clipnorm=1.0), loss="mse")

model.fit(
    x,
    y,
    batch_size=N_POINTS,
    epochs=N_STEPS,
    shuffle=False,
    verbose=0,
    callbacks=[LossReport()],
)
print("test mse:", model.evaluate(x_test, y_test, verbose=0))
