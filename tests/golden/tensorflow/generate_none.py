"""Generates with lm in TensorFlow."""

import argparse
import functools
import itertools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file, save_file

BATCH_SIZE = 4
PROMPT = 2  # words of each row that are read first
WORDS = 3  # that are chosen in answer

# float32 means float32, also on a GPU that has TF32.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    ids = data["ids"].astype(np.int32)
    return (ids,)


def load_weights(path):
    """Initial weights (kernels O, I, H, W; linear O, I) as this script stores them."""
    layout_file = Path(__file__).with_name("generate_tensorflow.layout.json")
    layout = json.loads(layout_file.read_text())
    weights = {}
    for name, array in load_file(path).items():
        entry = layout.get(name, {"target": name})
        array = array.reshape(entry.get("view", array.shape))
        array = array.transpose(entry.get("perm", range(array.ndim)))
        array = array.reshape(entry.get("reshape", array.shape))
        weights[entry["target"]] = array
    return weights


def batches(arrays):
    """Endless batches as tensors, in file order; rows left over are dropped."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(tf.constant(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]
    return itertools.cycle(ready)


def attention(q, k, v, *, causal=False, window=0):
    q, k, v = (tf.transpose(heads, (0, 2, 1, 3)) for heads in (q, k, v))
    scores = tf.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5
    if causal:
        seen = tf.ones(scores.shape[2:], scores.dtype)
        seen = tf.linalg.band_part(seen, window - 1, 0)  # -1: the whole triangle
        scores += (1 - seen) * (scores.dtype.min / 2)
    weights = tf.nn.softmax(scores)
    return tf.transpose(tf.matmul(weights, v), (0, 2, 1, 3))


class Attn(tf.Module):
    def __init__(self, weights, prefix):
        super().__init__()
        self.q_weight = tf.Variable(weights[f"{prefix}.q_weight"])
        self.k_weight = tf.Variable(weights[f"{prefix}.k_weight"])

    def __call__(self, x):
        q = tf.tensordot(x, self.q_weight, axes=1)
        q = tf.reshape(q, (-1, 6, 2, 4))
        x = tf.tensordot(x, self.k_weight, axes=1)
        x = tf.reshape(x, (-1, 6, 1, 4))
        return attention(q, x, x, causal=True, window=3)


class Lm(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.embed_weight = tf.Variable(weights["embed_weight"])
        self.places_weight = tf.Variable(weights["places_weight"])
        self.head_weight = tf.Variable(weights["head_weight"])
        self.attn = Attn(weights, "attn")

    def __call__(self, ids, positions):
        e = tf.nn.embedding_lookup(self.embed_weight, ids)
        p = e + self.places_weight[:6]
        a = self.attn(p)
        f = tf.reshape(a, (-1, 6, 8))
        r = p + f
        r_now = tf.gather(r, positions, axis=1)
        return tf.tensordot(r_now, self.head_weight, axes=1)


def decode_step(model, read, words, first):
    """Logits of the word that follows `words`, which join `read` at `first`; `read`."""
    positions = first + tf.range(words.shape[1])
    places, words = tf.transpose(read), tf.transpose(words)
    places = tf.tensor_scatter_nd_update(places, positions[:, None], words)
    read = tf.transpose(places)
    return model(read, positions[-1:])[:, -1], read


def compiled(function, *modules):
    """The graph of `function`, called with tensors alone.

    Modules among the arguments of each call cost it a tenth of a millisecond.
    """
    return tf.function(functools.partial(function, *modules))


def step_of(model):
    """The graph of decode_step, made once for a model."""
    if not hasattr(model, "decode"):
        model.decode = compiled(decode_step, model)
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


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    model = Lm(load_weights(args.weights))
    arrays = load_data(args.data)
    data = batches(arrays)
    steps = len(arrays[0]) // BATCH_SIZE if args.out else args.steps
    outputs = []
    for step in range(steps):
        output = predict_step(model, *next(data))
        if step % 10 == 0:
            print(f"batch {step}: first answer {output.numpy()[0].tolist()}")
        if args.out:
            outputs.append(output.numpy())
    if args.out:
        save_file({"words": np.concatenate(outputs)}, args.out)


if __name__ == "__main__":
    main()
