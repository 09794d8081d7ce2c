"""The CNN of recipes/mnist_cnn.toml in Keras on $KERAS_BACKEND, as one would type it.

Keras has eps inside the root of RMSprop and no option to move it; the equalised script
has it outside. The few operations are the same in number, so the times compare; the
losses of the two part from the second step on, and are compared loosely.
"""

import keras
import numpy as np
from keras import layers
from safetensors.numpy import load_file

from bursts import Bursts

BATCH = 256


def native(name, w):
    """Canonical weights in N,H,W,C order."""
    if w.ndim == 4:
        return w.transpose(2, 3, 1, 0)
    if name == "fc1.weight":  # reads pictures of 64 channels, 8 by 8
        return w.reshape(128, 64, 8, 8).transpose(2, 3, 1, 0).reshape(4096, 128)
    return w.T


class Pause(keras.callbacks.Callback):
    """An epoch is a burst."""

    def __init__(self, bursts):
        super().__init__()
        self.bursts = bursts

    def on_epoch_begin(self, epoch, logs=None):
        if epoch > 0 and not self.bursts.wait():
            raise SystemExit

    def on_epoch_end(self, epoch, logs=None):
        self.bursts.done(float(logs["loss"]), "mean")


def train(data: str, weights: str, bursts: Bursts) -> None:
    tensors = load_file(data)
    x = (tensors["x"].astype(np.float32) / 255).transpose(0, 2, 3, 1)
    y = tensors["y"].astype(np.int32)
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
    for name, w in load_file(weights).items():
        layer, leaf = name.split(".")
        variable = model.get_layer(layer)
        variable = variable.kernel if leaf == "weight" else variable.bias
        variable.assign(native(name, w))
    model.compile(
        optimizer=keras.optimizers.RMSprop(1e-4, rho=0.9, epsilon=1e-7),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    rows = bursts.steps * BATCH
    if not bursts.wait():
        return
    model.fit(
        x[:rows],
        y[:rows],
        batch_size=BATCH,
        epochs=1_000_000,
        shuffle=False,
        verbose=0,
        callbacks=[Pause(bursts)],
    )
