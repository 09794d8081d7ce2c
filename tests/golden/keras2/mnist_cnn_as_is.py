"""Trains mnist_cnn with Keras 2."""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf
import tf_keras as keras
from safetensors.numpy import load_file
from tf_keras import layers

BATCH_SIZE = 256
LEARNING_RATE = 1e-4


def load_data(path):
    """Returns the model's input and the targets."""
    tensors = load_file(path)
    x = tensors["x"].astype(np.float32) / 255.0
    x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))  # N, H, W, C
    y = tensors["y"].astype(np.int32)
    return x, y


def build_model():
    """Builds the model; pictures are N, H, W, C."""
    x = keras.Input((28, 28, 1), name="x")
    h = layers.Conv2D(32, (3, 3), name="conv1")(x)
    h = tf.nn.relu(h)
    h = layers.Conv2D(32, (3, 3), name="conv2")(h)
    h = tf.nn.relu(h)
    h = layers.MaxPooling2D((2, 2), strides=(2, 2))(h)
    h = layers.Conv2D(32, (3, 3), name="conv3")(h)
    h = tf.nn.relu(h)
    h = layers.Conv2D(64, (3, 3), name="conv4")(h)
    h = tf.nn.relu(h)
    h = layers.Flatten()(h)
    h = layers.Dense(128, name="fc1")(h)
    h = tf.nn.relu(h)
    logits = layers.Dense(10, name="fc2")(h)
    return keras.Model(x, logits, name="mnist_cnn")


def compile_model(model):
    """Sets how the model is trained."""
    optimizer = keras.optimizers.RMSprop(learning_rate=LEARNING_RATE)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        optimizer=optimizer, loss=loss, jit_compile=True, steps_per_execution=4
    )


def fit(model, x, y, epochs, callbacks=None):
    """Trains on the full batches of the data, shuffled every epoch."""
    if len(y) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    rows = len(y) // BATCH_SIZE * BATCH_SIZE
    return model.fit(
        x[:rows],
        y[:rows],
        batch_size=BATCH_SIZE,
        epochs=epochs,
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
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()

    x, y = load_data(arguments.data)
    model = build_model()
    compile_model(model)
    printer = LossPrinter(arguments.steps)  # ends the last epoch
    fit(model, x, y, epochs=arguments.steps, callbacks=[printer])


if __name__ == "__main__":
    main()
