"""Trains sequences with TensorFlow."""

import argparse
import functools
import itertools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
BETA_1 = 0.9
BETA_2 = 0.999
EPSILON = 1e-8

# float32 means float32, also on a GPU that has TF32.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
    last = data["last"].astype(np.int32)
    y = data["y"].astype(np.int32)
    return x, last, y


def load_weights(path):
    """Initial weights (kernels O, I, H, W; linear O, I) as this script stores them."""
    layout_file = Path(__file__).with_name("train_tensorflow.layout.json")
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


def half(x):
    return tf.cast(x, tf.float16)


def in_float32(function, x, *arguments, **options):
    """What adds up many elements, here or for a gradient; x comes in half precision."""
    return half(function(tf.cast(x, tf.float32), *arguments, **options))


def linear(x, weight, bias):
    """tf.matmul would repeat the weight for every row of a sequence."""
    return in_float32(tf.nn.bias_add, tf.tensordot(x, weight, axes=1), bias)


def attention(q, k, v, last=None, *, causal=False, window=0):
    """Products are in half precision, scores and softmax in float32."""
    q, k, v = (tf.transpose(heads, (0, 2, 1, 3)) for heads in (q, k, v))
    scores = tf.cast(tf.matmul(q, k, transpose_b=True), tf.float32)
    scores = scores * q.shape[-1] ** -0.5
    if causal:
        seen = tf.ones(scores.shape[2:], scores.dtype)
        seen = tf.linalg.band_part(seen, window - 1, 0)  # -1: the whole triangle
        scores += (1 - seen) * (scores.dtype.min / 2)
    if last is not None:
        after = tf.range(scores.shape[-1]) > last[:, None, None, None]
        scores += tf.cast(after, scores.dtype) * (scores.dtype.min / 2)
    weights = tf.nn.softmax(scores)
    return tf.transpose(tf.matmul(half(weights), v), (0, 2, 1, 3))


def lstm(x, weight_ih, weight_hh, bias=0.0):
    """The whole sequence from a zero state, unrolled; the gates are i, f, g, o.

    Products and outputs are in half precision, gates and cell in float32.
    """
    gates = in_float32(tf.add, tf.tensordot(x, half(weight_ih), 1), bias)
    h = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    c = tf.cast(h, tf.float32)
    outputs = []
    for step in tf.unstack(gates, axis=1):
        step = tf.cast(step + tf.matmul(h, half(weight_hh)), tf.float32)
        i, f, g, o = tf.split(step, 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.cast(tf.sigmoid(o) * tf.tanh(c), x.dtype)
        outputs.append(h)
    return tf.stack(outputs, axis=1)


class Sequences(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.place_weight = tf.Variable(weights["place_weight"])
        self.rnn_kernel = tf.Variable(weights["rnn_kernel"])
        self.rnn_recurrent = tf.Variable(weights["rnn_recurrent"])
        self.rnn_bias = tf.Variable(weights["rnn_bias"])
        self.bare_weight_ih_l0 = tf.Variable(weights["bare_weight_ih_l0"])
        self.bare_weight_hh_l0 = tf.Variable(weights["bare_weight_hh_l0"])
        self.deep_full_weight_ih_l0 = tf.Variable(weights["deep_full_weight_ih_l0"])
        self.deep_full_weight_hh_l0 = tf.Variable(weights["deep_full_weight_hh_l0"])
        self.deep_full_bias_ih_l0 = tf.Variable(weights["deep_full_bias_ih_l0"])
        self.head_weight = tf.Variable(weights["head_weight"])
        self.head_bias = tf.Variable(weights["head_bias"])

    def __call__(self, x, last):
        x = half(x)
        placed = in_float32(tf.add, x, self.place_weight[:6])
        own = lstm(placed, self.rnn_kernel, self.rnn_recurrent, self.rnn_bias)
        bare = lstm(own, self.bare_weight_ih_l0, self.bare_weight_hh_l0)
        full = lstm(
            bare,
            self.deep_full_weight_ih_l0,
            self.deep_full_weight_hh_l0,
            self.deep_full_bias_ih_l0,
        )
        q = tf.reshape(full, (-1, 6, 2, 2))
        a1 = attention(q, q, q, last, causal=True)
        a2 = attention(a1, q, a1, causal=True)
        a3 = attention(a2, q, q, last)
        a4 = attention(a3, q, a3, last)
        a5 = attention(a4, a3, q)
        f = tf.reshape(a5, (-1, 24))
        logits = linear(f, half(self.head_weight), self.head_bias)
        return tf.cast(logits, tf.float32)


def loss_fn(logits, y):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return tf.reduce_mean(losses)


def zeros_like(variables):
    return [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]


class Adam(tf.Module):
    """m_hat / (sqrt(v_hat) + epsilon)."""

    def __init__(self, variables):
        super().__init__()
        self.targets = list(variables)
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.moments = zeros_like(variables)
        self.squares = zeros_like(variables)

    def apply_gradients(self, gradients):
        t = tf.cast(self.step.assign_add(1), self.targets[0].dtype)
        root = tf.sqrt(1 - BETA_2**t)
        rate = LEARNING_RATE * root / (1 - BETA_1**t)
        for variable, g, moment, square in zip(
            self.targets, gradients, self.moments, self.squares, strict=True
        ):
            moment.assign_add((1 - BETA_1) * (g - moment))
            square.assign_add((1 - BETA_2) * (tf.square(g) - square))
            step = moment / (tf.sqrt(square) + EPSILON * root)
            variable.assign_sub(rate * step)


def train_step(model, optimizer, x, last, y):
    with tf.GradientTape() as tape:
        prediction = model(x, last)
        loss = loss_fn(prediction, y)
    gradients = tape.gradient(loss, optimizer.targets)
    optimizer.apply_gradients(gradients)
    return loss


def compiled(function, *modules):
    """The graph of `function`, called with tensors alone.

    Modules among the arguments of each call cost it a tenth of a millisecond.
    """
    return tf.function(functools.partial(function, *modules))


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = Sequences(load_weights(args.weights))
    optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
