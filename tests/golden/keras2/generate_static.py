"""Generates with lm in Keras 2."""

import argparse
import functools
import itertools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
import tf_keras as keras
from safetensors.numpy import load_file, save_file
from tf_keras import layers

tf.config.experimental.enable_tensor_float_32_execution(False)

BATCH_SIZE = 4
PROMPT = 2  # words of each row that are read first
WORDS = 3  # that are chosen in answer


def load_data(path):
    """Returns the model's input."""
    tensors = load_file(path)
    ids = tensors["ids"].astype(np.int32)
    return ids


class Parameter(layers.Layer):
    """Weights that are a value of the model by themselves; the input is not used."""

    def __init__(self, shape, **kwargs):
        super().__init__(**kwargs)
        self.shape = shape

    def build(self, input_shape):
        self.value = self.add_weight(
            shape=self.shape, initializer="uniform", name="value"
        )

    def call(self, x):
        return tf.identity(self.value)

    def compute_output_shape(self, input_shape):
        return self.shape


class CachedAttention(layers.Layer):
    """Attention to the keys and values of all places so far, which the layer keeps."""

    def __init__(self, places, window=0, **kwargs):
        super().__init__(**kwargs)
        self.places = places
        self.window = window

    def build(self, input_shape):
        rows, _, heads, width = input_shape[1]
        shape = (self.places, rows, heads, width)
        options = {"initializer": "zeros", "trainable": False}
        options["dtype"] = self.compute_dtype
        self.keys = self.add_weight(shape=shape, name="keys", **options)
        self.values = self.add_weight(shape=shape, name="values", **options)

    def call(self, inputs):
        q, k, v, positions = inputs
        for cache, new in ((self.keys, k), (self.values, v)):
            new = tf.transpose(new, (1, 0, 2, 3))
            cache.scatter_update(tf.IndexedSlices(new, positions))
        rows, heads, width = q.shape[0], q.shape[2], q.shape[3]
        grouped = (rows, -1, k.shape[2], heads // k.shape[2], width)
        scores = tf.einsum("ntgrd,sngd->ngrts", tf.reshape(q, grouped), self.keys)
        places, positions = tf.range(self.places), positions[:, None]
        seen = places <= positions
        if self.window > 0:
            seen &= places > positions - self.window
        scores = tf.where(seen, scores * width**-0.5, float("-inf"))
        x = tf.einsum("ngrts,sngd->ntgrd", tf.nn.softmax(scores), self.values)
        return tf.reshape(x, (rows, -1, heads, width))


def build_model():
    """Builds the model."""
    ids = keras.Input(batch_shape=(BATCH_SIZE, None), name="ids", dtype="int32")
    positions = keras.Input(batch_shape=(None,), name="positions", dtype="int32")
    e = layers.Embedding(9, 8, name="embed")(ids)
    p_table = Parameter((6, 8), name="places")(ids)
    p_rows = tf.reshape(p_table, (-1, 6, 8))
    p_rows_now = tf.gather(p_rows, positions, axis=1)
    p = tf.add(e, p_rows_now)
    q = layers.Dense(8, use_bias=False, name="attn_q")(p)
    qs = tf.reshape(q, (BATCH_SIZE, -1, 2, 4))
    k = layers.Dense(4, use_bias=False, name="attn_k")(p)
    ks = tf.reshape(k, (BATCH_SIZE, -1, 1, 4))
    a = CachedAttention(6, window=3, name="attn")([qs, ks, ks, positions])
    f = tf.reshape(a, (BATCH_SIZE, -1, 8))
    r = tf.add(p, f)
    r_last = r[:, -1:]
    head = layers.Dense(9, use_bias=False, name="head")(r_last)
    inputs = [ids, positions]
    return keras.Model(inputs, head, name="lm")


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
    """Sets how the model is run."""
    model.compile(jit_compile=False)


def decode_step(model, words, first):
    """Logits of the word that follows `words`, which begin at `first`."""
    positions = first + tf.range(words.shape[1])
    return model([words, positions])[:, -1]


def step_of(model):
    """The graph of decode_step, made once for a model."""
    if not hasattr(model, "decode"):
        step = functools.partial(decode_step, model)
        model.decode = tf.function(step, jit_compile=model.jit_compile)
    return model.decode


def likeliest(logits):
    return tf.argmax(logits, -1, tf.int32)


def generate(model, rows, choose=likeliest):
    """WORDS words in answer to the first PROMPT of each row, one after the other."""
    step = step_of(model)
    words, first = rows[:, :PROMPT], 0
    for _ in range(WORDS):
        logits = step(words, tf.constant(first))
        first += words.shape[1]
        words = choose(logits)[:, None]
        yield words


def predict_step(model, rows):
    parts = list(generate(model, rows))
    return tf.concat(parts, axis=1)


def batches(x):
    """Endless batches as tensors, in file order; rows left over are dropped."""
    if len(x) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tf.convert_to_tensor(x[i : i + BATCH_SIZE]) for i in starts]
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
    steps = len(arrays) // BATCH_SIZE if arguments.out else arguments.steps
    outputs = []
    for step in range(steps):
        output = predict_step(model, next(data))
        if step % 10 == 0:
            print(f"batch {step}: first answer {output.numpy()[0].tolist()}")
        if arguments.out:
            outputs.append(output.numpy())
    if arguments.out:
        save_file({"words": np.concatenate(outputs)}, arguments.out)


if __name__ == "__main__":
    main()
