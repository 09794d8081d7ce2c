"""Predicts with all_sorts in Keras on JAX."""

import argparse
import itertools
import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
from keras import layers, ops
from safetensors.numpy import load_file, save_file

jax.config.update("jax_default_matmul_precision", "highest")

BATCH_SIZE = 256


def load_data(path):
    """Returns the list of the model's inputs."""
    tensors = load_file(path)
    picture = tensors["picture"].astype(np.float32) / 255.0
    picture = np.ascontiguousarray(picture.transpose(0, 2, 3, 1))  # N, H, W, C
    words = tensors["words"].astype(np.int32)
    return [picture, words]


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
        x = ops.matmul(x, ops.transpose(self.owner.embeddings))
        return x + self.bias if self.use_bias else x

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)


def average_pool(x, pool_size, strides, padding):
    """Averages over windows; Keras has no padding that does not count."""
    padding = ((0, 0), *padding, (0, 0))
    ones = ops.pad(ops.ones((1, *x.shape[1:-1], 1)), padding)
    share = ops.average_pool(ones, pool_size, strides, padding="valid")
    x = ops.pad(x, padding)
    return ops.average_pool(x, pool_size, strides, padding="valid") / share


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
    x = ops.gelu(x, approximate=True)
    x_padded_2 = ops.pad(
        x, ((0, 0), (1, 0), (0, 1), (0, 0)), constant_values=float("-inf")
    )
    x = layers.MaxPooling2D((2, 2), strides=(1, 1))(x_padded_2)
    x = average_pool(x, (3, 2), (2, 2), ((1, 0), (0, 1)))
    x = ops.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=0.5)
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
    s = ops.sigmoid(n)
    gated = ops.multiply(n, s)
    pooled = layers.GlobalAveragePooling2D()(gated)
    words_2 = layers.Embedding(20, 6, name="words_2")
    e = words_2(words)
    t = ops.transpose(e, (0, 2, 1))
    r = ops.reshape(t, (-1, 5, 6))
    l_2 = layers.LayerNormalization(axis=-1, epsilon=1e-6, name="norm")(r)
    f = layers.Flatten()(l_2)
    d = layers.Dropout(0.25)(f)
    q = layers.Dense(6, name="mix")(d)
    w = ops.tanh(q)
    k = ops.softmax(w, axis=1)
    both = ops.concatenate([pooled, k], axis=1)
    z = layers.Dense(6, use_bias=False, name="head")(both)
    u = ops.add(z, pooled)
    ge = ops.gelu(u, approximate=False)
    logits = DenseTiedToEmbedding(words_2, 20, name="tied_bias")(ge)
    inputs = [picture, words]
    return keras.Model(inputs, logits, name="all_sorts")


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
    """Sets how the model is run."""
    model.compile(jit_compile="auto")


def predict_step(model, x):
    return model.predict_on_batch(x)


def batches(x):
    """Endless batches as tensors, in file order; rows left over are dropped."""
    if len(x[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(x[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    parts = [[array[i : i + BATCH_SIZE] for array in x] for i in starts]
    ready = [[ops.convert_to_tensor(array) for array in part] for part in parts]
    return itertools.cycle(ready)


def main():
    folder = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=folder / "data.safetensors")
    parser.add_argument("--weights", default=folder / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    arguments = parser.parse_args()

    model = build_model()
    load_weights(model, arguments.weights)
    compile_model(model)
    arrays = load_data(arguments.data)
    data = batches(arrays)
    steps = len(arrays[0]) // BATCH_SIZE if arguments.out else arguments.steps
    outputs = []
    for step in range(steps):
        output = predict_step(model, next(data))
        if step % 10 == 0:
            print(f"batch {step}: mean output {output.mean():.6f}")
        if arguments.out:
            outputs.append(np.asarray(output, np.float32))
    if arguments.out:
        save_file({"output": np.concatenate(outputs)}, arguments.out)


if __name__ == "__main__":
    main()
