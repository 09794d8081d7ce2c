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


def empty_cache(weights, *shape):
    """Zeros for places, rows, heads, width, in the type of the weights."""
    dtype = next(iter(weights.values())).dtype
    return tf.Variable(tf.zeros(shape, dtype), trainable=False)


def cached_attention(q, k, v, positions, keys, values, *, window=0):
    """k and v join the caches at their positions; then a query sees them up to its own."""
    for cache, new in ((keys, k), (values, v)):
        new = tf.IndexedSlices(tf.transpose(new, (1, 0, 2, 3)), positions)
        cache.scatter_update(new)
    heads = (q.shape[0], q.shape[1], keys.shape[2], -1, q.shape[3])
    scores = tf.einsum("ntgrd,sngd->ngrts", tf.reshape(q, heads), keys)
    places, positions = tf.range(keys.shape[0]), positions[:, None]
    seen = places <= positions
    if window:
        seen &= places > positions - window
    lowest = tf.constant(scores.dtype.min / 2, scores.dtype)
    scores = tf.where(seen, scores * q.shape[-1] ** -0.5, lowest)
    x = tf.einsum("ngrts,sngd->ntgrd", tf.nn.softmax(scores), values)
    return tf.reshape(x, q.shape)


class Attn(tf.Module):
    def __init__(self, weights, prefix):
        super().__init__()
        self.q_weight = tf.Variable(weights[f"{prefix}.q_weight"])
        self.k_weight = tf.Variable(weights[f"{prefix}.k_weight"])
        self.key_cache = empty_cache(weights, 6, BATCH_SIZE, 1, 4)
        self.value_cache = empty_cache(weights, 6, BATCH_SIZE, 1, 4)

    def __call__(self, x, positions):
        q = tf.tensordot(x, self.q_weight, axes=1)
        q = tf.reshape(q, (-1, q.shape[1], 2, 4))
        x = tf.tensordot(x, self.k_weight, axes=1)
        x = tf.reshape(x, (-1, x.shape[1], 1, 4))
        return cached_attention(
            q, x, x, positions, self.key_cache, self.value_cache, window=3
        )


class Lm(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.embed_weight = tf.Variable(weights["embed_weight"])
        self.places_weight = tf.Variable(weights["places_weight"])
        self.head_weight = tf.Variable(weights["head_weight"])
        self.attn = Attn(weights, "attn")

    def __call__(self, ids, positions):
        e = tf.nn.embedding_lookup(self.embed_weight, ids)
        p_rows = tf.reshape(self.places_weight, (-1, 6, 8))
        p_rows_now = tf.gather(p_rows, positions, axis=1)
        p = e + p_rows_now
        a = self.attn(p, positions)
        f = tf.reshape(a, (-1, a.shape[1], 8))
        r = p + f
        r_last = r[:, -1:]
        return tf.tensordot(r_last, self.head_weight, axes=1)


def decode_step(model, words, first):
    """Logits of the word that follows `words`, which begin at `first`."""
    positions = first + tf.range(words.shape[1])
    return model(words, positions)[:, -1]


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
    words, first = rows[:, :PROMPT], 0
    for _ in range(WORDS):
        logits = step(words, tf.constant(first))
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
