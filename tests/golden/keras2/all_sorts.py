"""Trains all_sorts with Keras 2."""

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
    """Returns the list of the model's inputs and the targets."""
    tensors = load_file(path)
    picture = tensors["picture"].astype(np.float32)
    picture = np.ascontiguousarray(picture.transpose(0, 2, 3, 1))  # N, H, W, C
    words = tensors["words"].astype(np.int32)
    y = tensors["y"].astype(np.int32)
    return [picture, words], y


class DenseTiedToEmbedding(layers.Layer):
    """A dense layer with the weight of an embedding."""

    def __init__(self, owner, units, use_bias=True, **kwargs):
        super().__init__(**kwargs)
        self.owner, self.units, self.use_bias = owner, units, use_bias

    def build(self, input_shape):
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(self.units,), initializer="zeros", name="bias"
            )

    def call(self, x):
        x = tf.tensordot(x, tf.transpose(self.owner.embeddings), 1)
        return x + self.bias if self.use_bias else x

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)


def average_pool(x, pool_size, strides, padding):
    """Averages over windows; Keras has no padding that does not count."""
    padding = ((0, 0), *padding, (0, 0))
    ones = tf.pad(tf.ones((1, *x.shape[1:-1], 1), x.dtype), padding)
    share = tf.nn.avg_pool(ones, pool_size, strides, padding="VALID")
    x = tf.pad(x, padding)
    return tf.nn.avg_pool(x, pool_size, strides, padding="VALID") / share


def stem(x, prefix):
    x_padded = layers.ZeroPadding2D(((0, 1), (1, 0)))(x)
    x = layers.Conv2D(6, (3, 2), strides=(2, 1), name=f"{prefix}_conv")(x_padded)
    x = layers.Conv2D(
        6,
        (3, 3),
        padding="same",
        dilation_rate=(2, 2),
        groups=6,
        use_bias=False,
        name=f"{prefix}_depth",
    )(x)
    x = tf.nn.gelu(x, approximate=True)
    x_padded_2 = tf.pad(
        x, ((0, 0), (1, 0), (0, 1), (0, 0)), constant_values=float("-inf")
    )
    x = layers.MaxPooling2D((2, 2), strides=(1, 1))(x_padded_2)
    x = average_pool(x, (3, 2), (2, 2), ((1, 0), (0, 1)))
    x = tf.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=0.5)
    x_padded_3 = layers.ZeroPadding2D(((1, 1), (0, 0)))(x)
    x = layers.AveragePooling2D((2, 2), strides=(1, 1))(x_padded_3)
    return layers.BatchNormalization(
        axis=-1, momentum=0.99, epsilon=0.001, name=f"{prefix}_bn"
    )(x)


def build_model():
    """Builds the model; pictures are N, H, W, C."""
    picture = keras.Input((9, 8, 3), name="picture")
    words = keras.Input((5,), name="words", dtype="int32")
    n = stem(picture, "stem")
    s = tf.sigmoid(n)
    gated = tf.multiply(n, s)
    pooled = layers.GlobalAveragePooling2D()(gated)
    words_2 = layers.Embedding(20, 6, name="words_2")
    e = words_2(words)
    t = tf.transpose(e, (0, 2, 1))
    r = tf.reshape(t, (-1, 5, 6))
    l_2 = layers.LayerNormalization(axis=-1, epsilon=1e-6, name="norm")(r)
    f = layers.Flatten()(l_2)
    d = layers.Dropout(0.25)(f)
    q = layers.Dense(6, name="mix")(d)
    w = tf.tanh(q)
    k = tf.nn.softmax(w, axis=1)
    both = tf.concat([pooled, k], axis=1)
    z = layers.Dense(6, use_bias=False, name="head")(both)
    u = tf.add(z, pooled)
    ge = tf.nn.gelu(u, approximate=False)
    logits = DenseTiedToEmbedding(words_2, 20, name="tied_bias")(ge)
    inputs = [picture, words]
    return keras.Model(inputs, logits, name="all_sorts")


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
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    model.compile(
        optimizer=optimizer, loss=loss, jit_compile=False, steps_per_execution=1
    )


def fit(model, x, y, epochs, callbacks=None):
    """Trains on the full batches of the data, in file order."""
    if len(y) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    rows = len(y) // BATCH_SIZE * BATCH_SIZE
    return model.fit(
        [array[:rows] for array in x],
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
