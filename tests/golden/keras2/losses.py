"""Trains losses with Keras 2."""

import argparse
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
import tf_keras as keras
from safetensors.numpy import load_file
from tf_keras import layers

tf.config.experimental.enable_tensor_float_32_execution(False)

BATCH_SIZE = 1000
LEARNING_RATE = 0.001


def load_data(path):
    """Returns the model's input and the targets."""
    tensors = load_file(path)
    x = tensors["x"].astype(np.float32)
    x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))  # N, H, W, C
    y = tensors["y"].astype(np.int32)
    t = tensors["t"].astype(np.float32)
    t = np.ascontiguousarray(t.transpose(0, 2, 3, 1))  # N, H, W, C
    return x, [y, y, t, t]


def build_model():
    """Builds the model; pictures are N, H, W, C."""
    x = keras.Input((4, 4, 2), name="x")
    h = layers.Conv2D(2, (3, 3), padding="same", name="trunk")(x)
    h = tf.nn.relu(h)
    picture = layers.Conv2D(2, (1, 1), name="decoder")(h)
    h = layers.Flatten()(h)
    logits = layers.Dense(5, name="head")(h)
    h = layers.Dense(5, name="aux")(h)
    picture_copy = tf.identity(picture)
    outputs = [logits, h, picture, picture_copy]
    return keras.Model(x, outputs, name="losses")


def masked_cross_entropy(y_true, y_pred):
    """Cross entropy of integer labels other than -100."""
    log_p = tf.nn.log_softmax(y_pred)
    labels = tf.reshape(tf.cast(y_true, tf.int32), (-1, *y_pred.shape[1:-1]))
    kept = tf.not_equal(labels, -100)
    labels = tf.where(kept, labels, 0)
    losses = -tf.gather(log_p, labels, batch_dims=y_pred.shape.rank - 1)
    kept = tf.cast(kept, losses.dtype)
    return tf.reduce_sum(losses * kept) / tf.maximum(tf.reduce_sum(kept), 1)


def smoothed_cross_entropy(y_true, y_pred):
    """Cross entropy of integer labels other than -100 that give away a share."""
    log_p = tf.nn.log_softmax(y_pred)
    labels = tf.reshape(tf.cast(y_true, tf.int32), (-1, *y_pred.shape[1:-1]))
    kept = tf.not_equal(labels, -100)
    labels = tf.where(kept, labels, 0)
    losses = -(1 - 0.1) * tf.gather(log_p, labels, batch_dims=y_pred.shape.rank - 1)
    losses -= 0.1 * tf.reduce_mean(log_p, -1)
    kept = tf.cast(kept, losses.dtype)
    return tf.reduce_sum(losses * kept) / tf.maximum(tf.reduce_sum(kept), 1)


def summed_error(y_true, y_pred):
    """The sum over all elements; Keras's own losses average over the last axis."""
    return tf.reduce_sum(tf.abs(y_pred - y_true))


def load_weights(model, path):
    """Copies weights in the common layout (kernels O, I, H, W) into the model."""
    layout = json.loads(Path(__file__).with_suffix(".layout.json").read_text())
    variables = {v.name.removesuffix(":0"): v for v in model.variables}
    for name, weight in load_file(path).items():
        place = layout[name]
        weight = weight.reshape(place.get("view", weight.shape))
        weight = weight.transpose(place.get("perm", range(weight.ndim)))
        weight = weight.reshape(place.get("reshape", weight.shape))
        variables[place["target"]].assign(weight)


def compile_model(model):
    """Sets how the model is trained."""
    optimizer = keras.optimizers.Adam(
        learning_rate=LEARNING_RATE,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-8,
        adaptive_epsilon=True,
    )
    losses = [
        masked_cross_entropy,
        smoothed_cross_entropy,
        keras.losses.MeanSquaredError(reduction="sum_over_batch_size"),
        summed_error,
    ]
    model.compile(
        optimizer=optimizer,
        loss=losses,
        loss_weights=[1.0, 0.3, 1.0, -0.001],
        jit_compile=False,
        steps_per_execution=1,
    )


def fit(model, x, y, epochs, callbacks=None):
    """Trains on the full batches of the data, in file order."""
    if len(y[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    rows = len(y[0]) // BATCH_SIZE * BATCH_SIZE
    return model.fit(
        x[:rows],
        [array[:rows] for array in y],
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
