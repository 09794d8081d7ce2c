"""Trains mlp_small with Keras on JAX."""

import argparse
import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
from keras import layers, ops
from safetensors.numpy import load_file

jax.config.update("jax_default_matmul_precision", "highest")

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
DEVICES = 2

# Without an accelerator, DEVICES devices are made of the processors.
jax.config.update("jax_num_cpu_devices", DEVICES)
MESH = keras.distribution.DeviceMesh(
    (DEVICES,), ["data"], keras.distribution.list_devices()[:DEVICES]
)
keras.distribution.set_distribution(keras.distribution.DataParallel(MESH))


def load_data(path):
    """Returns the model's input and the targets."""
    tensors = load_file(path)
    x = tensors["x"].astype(np.float32)
    y = tensors["y"].astype(np.int32)
    return x, y


def build_model():
    """Builds the model."""
    x = keras.Input((100,), name="x")
    h = layers.Dense(128, name="fc1")(x)
    h = ops.relu(h)
    logits = layers.Dense(10, name="fc2")(h)
    return keras.Model(x, logits, name="mlp_small")


class AdamEpsOutside(keras.optimizers.Adam):
    """Adam that divides by sqrt(v_hat) + epsilon, as in the paper's algorithm 1."""

    def update_step(self, gradient, variable, learning_rate):
        lr = ops.cast(learning_rate, variable.dtype)
        step = ops.cast(self.iterations + 1, variable.dtype)
        correction_1 = 1 - self.beta_1**step
        correction_2 = ops.sqrt(1 - self.beta_2**step)
        alpha = lr * correction_2 / correction_1
        index = self._get_variable_index(variable)
        momentum, velocity = self._momentums[index], self._velocities[index]
        m = momentum + (1 - self.beta_1) * (gradient - momentum)
        v = velocity + (1 - self.beta_2) * (ops.square(gradient) - velocity)
        self.assign(momentum, m)
        self.assign(velocity, v)
        root = ops.sqrt(v) + self.epsilon * correction_2
        self.assign_sub(variable, alpha * m / root)


def load_weights(model, path):
    """Copies weights in the common layout (kernels O, I, H, W) into the model."""
    layout = json.loads(Path(__file__).with_suffix(".layout.json").read_text())
    variables = {variable.path: variable for variable in model.variables}
    for name, weight in load_file(path).items():
        place = layout[name]
        weight = weight.reshape(place.get("view", weight.shape))
        weight = weight.transpose(place.get("perm", range(weight.ndim)))
        weight = weight.reshape(place.get("reshape", weight.shape))
        variables[place["target"]].assign(weight)


def compile_model(model):
    """Sets how the model is trained."""
    optimizer = AdamEpsOutside(
        learning_rate=LEARNING_RATE, beta_1=0.9, beta_2=0.999, epsilon=1e-8
    )
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="sum_over_batch_size"
    )
    model.compile(
        optimizer=optimizer, loss=loss, jit_compile="auto", steps_per_execution=1
    )


def fit(model, x, y, epochs, callbacks=None):
    """Trains on the full batches of the data, in file order."""
    if len(y) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    rows = len(y) // BATCH_SIZE * BATCH_SIZE
    return model.fit(
        x[:rows],
        y[:rows],
        batch_size=BATCH_SIZE,
        epochs=epochs,
        shuffle=False,
        callbacks=callbacks,
        verbose=0,
    )


class LossPrinter(keras.callbacks.Callback):
    """Prints the loss of every tenth step and ends the training after `steps`."""

    def __init__(self, steps):
        super().__init__()
        self.steps, self.step, self.seen, self.total = steps, 0, 0, 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self.seen, self.total = 0, 0.0

    def on_train_batch_end(self, batch, logs=None):
        # Keras reports the mean of the epoch so far.
        seen = min(batch + 1, self.params["steps"])
        total = logs["loss"] * seen
        done, loss = seen - self.seen, (total - self.total) / (seen - self.seen)
        self.seen, self.total = seen, total
        if -self.step % 10 < done:  # a multiple of ten lies in these steps
            print(f"step {self.step}: loss {loss:.6f}")
        self.step += done
        if self.step >= self.steps:
            self.model.stop_training = True


def main():
    folder = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=folder / "data.safetensors")
    parser.add_argument("--weights", default=folder / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()

    x, y = load_data(arguments.data)
    model = build_model()
    load_weights(model, arguments.weights)
    compile_model(model)
    printer = LossPrinter(arguments.steps)  # ends the last epoch
    fit(model, x, y, epochs=arguments.steps, callbacks=[printer])


if __name__ == "__main__":
    main()
