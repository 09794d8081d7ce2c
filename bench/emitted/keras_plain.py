"""The CNN of recipes/mnist_cnn.toml in Keras on $KERAS_BACKEND, as one would type it.

Keras has eps inside the root of RMSprop and no option to move it, so this is its stock
RMSprop, with what the backend makes of it; the equalised script has eps outside the
root, in a subclass of its own. The few operations are the same in number. The first
loss of the two is the same; later ones part, and their mean is compared loosely.
"""

# mypy: ignore-errors

import os

import keras
import numpy as np
from bakeoff_runner.adapters.keras_backends import BACKENDS
from keras import layers
from pairing.bursts import Bursts
from safetensors.numpy import load_file

BATCH = 256


def native(name, w):
    """Canonical weights in N,H,W,C order."""
    if w.ndim == 4:
        return w.transpose(2, 3, 1, 0)
    if name == "fc1.weight":  # reads pictures of 64 channels, 8 by 8
        return w.reshape(128, 64, 8, 8).transpose(2, 3, 1, 0).reshape(4096, 128)
    return w.T


def make_model(weights):
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu", name="conv1"),
            layers.Conv2D(32, 3, activation="relu", name="conv2"),
            layers.MaxPooling2D(2),
            layers.Conv2D(32, 3, activation="relu", name="conv3"),
            layers.Conv2D(64, 3, activation="relu", name="conv4"),
            layers.Flatten(),
            layers.Dense(128, activation="relu", name="fc1"),
            layers.Dense(10, name="fc2"),
        ]
    )
    for name, w in weights.items():
        layer, leaf = name.split(".")
        variable = model.get_layer(layer)
        variable = variable.kernel if leaf == "weight" else variable.bias
        variable.assign(native(name, w))
    return model


class Pause(keras.callbacks.Callback):
    """Stops `fit` before a batch, as often as a burst is over.

    The barrier is the one of the worker, so that both bursts end at the same point.
    """

    def __init__(self, bursts):
        super().__init__()
        self.bursts = bursts
        self.left = 0
        self.barrier = BACKENDS[os.environ["KERAS_BACKEND"]]().barrier
        self.running = False

    def on_train_batch_begin(self, batch, logs=None):
        if self.left == 0:
            if self.running:
                self.answer()
            if not self.bursts.wait():
                raise SystemExit
            self.running, self.left = True, self.bursts.steps
            self.bursts.start()
        self.left -= 1

    def answer(self):
        self.barrier(self.model)
        self.bursts.stop()
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()
        # Of the epoch so far, so that only the first is that of a burst.
        self.bursts.done(float(self.model.get_metrics_result()["loss"]), "mean")


def train(bursts: Bursts, data: str, weights: str) -> None:
    tensors = load_file(data)
    x = (tensors["x"].astype(np.float32) / 255).transpose(0, 2, 3, 1)
    x = np.ascontiguousarray(x)
    y = tensors["y"].astype(np.int32)
    model = make_model(load_file(weights))
    model.compile(
        optimizer=keras.optimizers.RMSprop(1e-4, rho=0.9, epsilon=1e-7),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    if not bursts.wait():
        return
    first = model.evaluate(x[:BATCH], y[:BATCH], batch_size=BATCH, verbose=0)
    bursts.done(float(first), "first")
    rows = len(x) // BATCH * BATCH
    model.fit(
        x[:rows],
        y[:rows],
        batch_size=BATCH,
        epochs=1_000_000,
        shuffle=False,
        verbose=0,
        callbacks=[Pause(bursts)],
    )
