"""What every plain script in Keras has: its data, its weights, `fit`.

The same for Keras 3 on $KERAS_BACKEND and, where $PLAIN_KERAS says tf_keras, for Keras
2. Keras has eps of Adam and RMSprop elsewhere than the equalised scripts, and weight
decay beside the gradient; these are its stock optimizers all the same, with what the
backend makes of them. The operations are the same in number; of losses only the mean
of the first steps is compared, and more loosely.
"""

# mypy: ignore-errors

import importlib
import os

import numpy as np
from safetensors.numpy import load_file

keras = importlib.import_module(os.environ.get("PLAIN_KERAS", "keras"))

LEAVES = {
    "weight": ("kernel", "gamma", "embeddings"),
    "bias": ("bias", "beta"),
    "running_mean": ("moving_mean",),
    "running_var": ("moving_variance",),
}


def load_data(path, inputs, targets, rows_of):
    """Whole batches; pictures in N, H, W, C."""
    tensors = load_file(path)
    rows = len(tensors[targets]) // rows_of * rows_of
    arrays = [tensors[name][:rows] for name in (*inputs, targets)]
    arrays = [
        np.ascontiguousarray(a.transpose(0, 2, 3, 1)) if a.ndim == 4 else a
        for a in arrays
    ]
    *x, y = arrays
    return x[0] if len(x) == 1 else x, y


def native(name, w):
    """Linear weights as inputs x outputs, kernels H, W, I, O."""
    if w.ndim == 4:
        return w.transpose(2, 3, 1, 0)
    return w.T if w.ndim == 2 else w


def assign(model, path, native=native):
    """ "layer1.0.conv1.weight" is the kernel of layer "layer1_0_conv1"."""
    for name, w in load_file(path).items():
        layer, _, leaf = name.rpartition(".")
        layer = model.get_layer(layer.replace(".", "_"))
        [variable] = [
            getattr(layer, leaf) for leaf in LEAVES[leaf] if hasattr(layer, leaf)
        ]
        variable.assign(np.reshape(native(name, w), variable.shape))


class Pause(keras.callbacks.Callback):
    """Stops `fit` before a batch, as often as a burst is over.

    The barrier is the one of the worker, so that both bursts end at the same point.
    """

    def __init__(self, bursts):
        super().__init__()
        self._supports_tf_logs = True  # Keras 2 would wait for each step's logs
        self.bursts = bursts
        self.barrier = _backend().barrier
        self.left = -1
        self.total = 0.0  # of the losses in whole epochs

    def on_train_batch_begin(self, batch, logs=None):
        if self.left == 0:
            self.answer(batch)
        if self.left <= 0:
            if not self.bursts.wait():
                raise SystemExit
            self.left = self.bursts.steps
            self.bursts.start()
        self.left -= 1

    def on_epoch_end(self, epoch, logs=None):
        self.total += float(logs["loss"]) * self.params["steps"]

    def answer(self, batch):
        """The mean since training began, so that only the first is that of a burst."""
        self.barrier(self.model)
        self.bursts.stop()
        total = self.total
        if batch > 0:
            if os.environ.get("KERAS_BACKEND") == "jax":
                self.model.jax_state_sync()
            [tracker] = [m for m in self.model.metrics if m.name == "loss"]
            total += float(tracker.result()) * batch
        self.bursts.done(total / self.bursts.steps, "mean")


def _backend():
    if keras.__name__ == "tf_keras":
        from bakeoff_runner.adapters.keras_libraries import Keras2

        return Keras2().backend({})
    from bakeoff_runner.adapters.keras_backends import BACKENDS

    return BACKENDS[os.environ["KERAS_BACKEND"]]()


def train_loop(bursts, model, optimizer, x, y, batch_size):
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(
        x,
        y,
        batch_size=batch_size,
        epochs=1_000_000,
        shuffle=False,
        verbose=0,
        callbacks=[Pause(bursts)],
    )
