"""Trains speech with Keras 2."""

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
    sound = tensors["sound"].astype(np.float32)
    words = tensors["words"].astype(np.int32)
    return sound, [words, words]


class GRUCell(layers.Layer):
    """As layers.GRUCell, with the gates r, z, n and two biases of their own."""

    def __init__(self, units, use_bias=True, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = self.output_size = units
        self.use_bias = use_bias

    def build(self, input_shape):
        gates = 3 * self.units
        self.kernel = self.add_weight(
            shape=(input_shape[-1], gates), initializer="glorot_uniform", name="kernel"
        )
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, gates), initializer="orthogonal", name="recurrent_kernel"
        )
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(gates,), initializer="zeros", name="bias"
            )
            self.recurrent_bias = self.add_weight(
                shape=(gates,), initializer="zeros", name="recurrent_bias"
            )

    def call(self, x, states):
        h = states[0]
        from_x = tf.matmul(x, self.kernel)
        from_h = tf.matmul(h, self.recurrent_kernel)
        if self.use_bias:
            from_x, from_h = from_x + self.bias, from_h + self.recurrent_bias
        xr, xz, xn = tf.split(from_x, 3, -1)
        hr, hz, hn = tf.split(from_h, 3, -1)
        r, z = tf.sigmoid(xr + hr), tf.sigmoid(xz + hz)
        n = tf.tanh(xn + r * hn)
        h = n + z * (h - n)
        return h, [h]


def build_model():
    """Builds the model."""
    sound = keras.Input((12, 5), name="sound")
    h = layers.RNN(GRUCell(6, name="gru_cell"), return_sequences=True, name="rnn")(
        sound
    )
    early = layers.Dense(7, name="early")(sound)
    logits = layers.Dense(7, name="head")(h)
    outputs = [logits, early]
    return keras.Model(sound, outputs, name="speech")


def ctc(y_true, y_pred):
    """CTC of rows of labels, padded with -1, in all frames; class 0 is blank."""
    labels = tf.cast(y_true, tf.int32)
    lengths = tf.reduce_sum(tf.cast(labels >= 0, tf.int32), 1)
    losses = tf.nn.ctc_loss(
        labels=tf.maximum(labels, 0),
        logits=y_pred,
        label_length=lengths,
        logit_length=tf.fill(tf.shape(lengths), y_pred.shape[1]),
        logits_time_major=False,
        blank_index=0,
    )
    return losses


def ctc_2(y_true, y_pred):
    """CTC of rows of labels, padded with -1, in all frames; class 0 is blank."""
    labels = tf.cast(y_true, tf.int32)
    lengths = tf.reduce_sum(tf.cast(labels >= 0, tf.int32), 1)
    losses = tf.nn.ctc_loss(
        labels=tf.maximum(labels, 0),
        logits=y_pred,
        label_length=lengths,
        logit_length=tf.fill(tf.shape(lengths), y_pred.shape[1]),
        logits_time_major=False,
        blank_index=0,
    )
    return tf.reduce_sum(losses)


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
        ctc,
        ctc_2,
    ]
    model.compile(
        optimizer=optimizer,
        loss=losses,
        loss_weights=[1.0, 0.1],
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
