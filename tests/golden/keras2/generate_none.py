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


class PositionEmbedding(layers.Layer):
    """Adds a trained vector to each place of a sequence."""

    def __init__(self, rows, **kwargs):
        super().__init__(**kwargs)
        self.rows = rows

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            shape=(self.rows, input_shape[-1]), initializer="uniform", name="embeddings"
        )

    def call(self, x):
        return x + self.embeddings[: x.shape[1]]

    def compute_output_shape(self, input_shape):
        return input_shape


def attention(q, k, v, mask):
    """Scaled dot-product attention over N, tokens, heads, width."""
    scores = tf.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
    scores = tf.where(mask, scores, float("-inf"))
    weights = tf.nn.softmax(scores)
    return tf.einsum("nhts,nshd->nthd", weights, v)


def window_mask(keys, window):
    """True for the last keys up to the query, as many as the window has: 1, 1, keys, keys."""
    ones = tf.ones((1, 1, keys, keys), dtype="bool")
    return tf.linalg.band_part(ones, window - 1, 0)


def attn(x, prefix):
    q = layers.Dense(8, use_bias=False, name=f"{prefix}_q")(x)
    q = tf.reshape(q, (-1, 6, 2, 4))
    x = layers.Dense(4, use_bias=False, name=f"{prefix}_k")(x)
    x = tf.reshape(x, (-1, 6, 1, 4))
    return attention(
        q, tf.repeat(x, 2, axis=2), tf.repeat(x, 2, axis=2), mask=window_mask(6, 3)
    )


def build_model():
    """Builds the model."""
    ids = keras.Input((6,), name="ids", dtype="int32")
    positions = keras.Input(batch_shape=(None,), name="positions", dtype="int32")
    e = layers.Embedding(9, 8, name="embed")(ids)
    p = PositionEmbedding(6, name="places")(e)
    a = attn(p, "attn")
    f = tf.reshape(a, (-1, 6, 8))
    r = tf.add(p, f)
    r_now = tf.gather(r, positions, axis=1)
    head = layers.Dense(9, use_bias=False, name="head")(r_now)
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


def decode_step(model, read, words, first):
    """Logits of the word that follows `words`, which join `read` at `first`; `read`."""
    positions = first + tf.range(words.shape[1])
    places, words = tf.transpose(read), tf.transpose(words)
    places = tf.tensor_scatter_nd_update(places, positions[:, None], words)
    read = tf.transpose(places)
    return model([read, positions[-1:]])[:, -1], read


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
    read = tf.zeros_like(rows)
    words, first = rows[:, :PROMPT], 0
    for _ in range(WORDS):
        logits, read = step(read, words, tf.constant(first))
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
