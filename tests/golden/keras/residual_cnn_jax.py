"""Trains residual_cnn with Keras on JAX."""

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

BATCH_SIZE = 256
LEARNING_RATE = 0.1
WEIGHT_DECAY = 5e-4


def load_data(path):
    """Returns the model's input and the targets."""
    tensors = load_file(path)
    x = tensors["x"].astype(np.float32) / 255.0
    x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))  # N, H, W, C
    y = tensors["y"].astype(np.int32)
    return x, y


def block(x, prefix):
    x = layers.Conv2D(
        16, (3, 3), padding="same", use_bias=False, name=f"{prefix}_conv1"
    )(x)
    x = layers.BatchNormalization(
        axis=-1, momentum=0.9, epsilon=1e-5, name=f"{prefix}_bn1"
    )(x)
    x = ops.relu(x)
    x = layers.Conv2D(
        16, (3, 3), padding="same", use_bias=False, name=f"{prefix}_conv2"
    )(x)
    return layers.BatchNormalization(
        axis=-1, momentum=0.9, epsilon=1e-5, name=f"{prefix}_bn2"
    )(x)


def down_block(x, prefix):
    h = layers.Conv2D(
        32, (1, 1), strides=(2, 2), use_bias=False, name=f"{prefix}_down_conv"
    )(x)
    h = layers.BatchNormalization(
        axis=-1, momentum=0.9, epsilon=1e-5, name=f"{prefix}_down_bn"
    )(h)
    x_padded = layers.ZeroPadding2D(((1, 1), (1, 1)))(x)
    x = layers.Conv2D(
        32, (3, 3), strides=(2, 2), use_bias=False, name=f"{prefix}_conv1"
    )(x_padded)
    x = layers.BatchNormalization(
        axis=-1, momentum=0.9, epsilon=1e-5, name=f"{prefix}_bn1"
    )(x)
    x = ops.relu(x)
    x = layers.Conv2D(
        32, (3, 3), padding="same", use_bias=False, name=f"{prefix}_conv2"
    )(x)
    x = layers.BatchNormalization(
        axis=-1, momentum=0.9, epsilon=1e-5, name=f"{prefix}_bn2"
    )(x)
    return ops.add(x, h)


def build_model():
    """Builds the model; pictures are N, H, W, C."""
    x = keras.Input((28, 28, 1), name="x")
    x_padded = layers.ZeroPadding2D(((1, 1), (1, 1)))(x)
    h = layers.Conv2D(16, (3, 3), strides=(2, 2), use_bias=False, name="stem_conv")(
        x_padded
    )
    h = layers.BatchNormalization(axis=-1, momentum=0.9, epsilon=1e-5, name="stem_bn")(
        h
    )
    h = ops.relu(h)
    u = block(h, "block1")
    h = ops.add(u, h)
    h = ops.relu(h)
    h = down_block(h, "block2")
    h = ops.relu(h)
    h = layers.GlobalAveragePooling2D()(h)
    logits = layers.Dense(10, name="fc")(h)
    return keras.Model(x, logits, name="residual_cnn")


class SGDL2(keras.optimizers.SGD):
    """SGD with L2 decay, added to the gradient; in Keras decay is decoupled."""

    def update_step(self, gradient, variable, learning_rate):
        gradient = gradient + WEIGHT_DECAY * variable
        super().update_step(gradient, variable, learning_rate)


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
    optimizer = SGDL2(learning_rate=LEARNING_RATE, momentum=0.9, nesterov=True)
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
