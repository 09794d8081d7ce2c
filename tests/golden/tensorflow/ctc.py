"""Trains speech with TensorFlow."""

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
    sound = data["sound"].astype(np.float32)
    words = data["words"].astype(np.int32)
    return sound, words


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


def linear(x, weight, bias):
    """tf.matmul would repeat the weight for every row of a sequence."""
    return tf.nn.bias_add(tf.tensordot(x, weight, axes=1), bias)


def gru(x, weight_ih, weight_hh, bias_ih, bias_hh):
    """The whole sequence from a zero state, unrolled; the gates are r, z, n."""
    gates = tf.tensordot(x, weight_ih, 1) + bias_ih
    h = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    outputs = []
    for step in tf.unstack(gates, axis=1):
        xr, xz, xn = tf.split(step, 3, axis=-1)
        hr, hz, hn = tf.split(tf.matmul(h, weight_hh) + bias_hh, 3, axis=-1)
        r, z = tf.sigmoid(xr + hr), tf.sigmoid(xz + hz)
        n = tf.tanh(xn + r * hn)
        h = n + z * (h - n)
        outputs.append(h)
    return tf.stack(outputs, axis=1)


class Speech(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.rnn_weight_ih_l0 = tf.Variable(weights["rnn_weight_ih_l0"])
        self.rnn_weight_hh_l0 = tf.Variable(weights["rnn_weight_hh_l0"])
        self.rnn_bias_ih_l0 = tf.Variable(weights["rnn_bias_ih_l0"])
        self.rnn_bias_hh_l0 = tf.Variable(weights["rnn_bias_hh_l0"])
        self.early_weight = tf.Variable(weights["early_weight"])
        self.early_bias = tf.Variable(weights["early_bias"])
        self.head_weight = tf.Variable(weights["head_weight"])
        self.head_bias = tf.Variable(weights["head_bias"])

    def __call__(self, sound):
        h = gru(
            sound,
            self.rnn_weight_ih_l0,
            self.rnn_weight_hh_l0,
            self.rnn_bias_ih_l0,
            self.rnn_bias_hh_l0,
        )
        early = linear(sound, self.early_weight, self.early_bias)
        logits = linear(h, self.head_weight, self.head_bias)
        return logits, early


def loss_fn(logits, early, words):
    losses = tf.nn.ctc_loss(
        labels=tf.maximum(words, 0),
        logits=logits,
        label_length=tf.math.count_nonzero(words >= 0, axis=1, dtype=tf.int32),
        logit_length=tf.fill(tf.shape(logits)[:1], logits.shape[1]),
        logits_time_major=False,
        blank_index=0,
    )
    main_2 = tf.reduce_mean(losses)
    losses = tf.nn.ctc_loss(
        labels=tf.maximum(words, 0),
        logits=early,
        label_length=tf.math.count_nonzero(words >= 0, axis=1, dtype=tf.int32),
        logit_length=tf.fill(tf.shape(early)[:1], early.shape[1]),
        logits_time_major=False,
        blank_index=0,
    )
    aux = tf.reduce_sum(losses)
    loss = main_2 + 0.1 * aux
    return loss


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


def train_step(model, optimizer, sound, words):
    with tf.GradientTape() as tape:
        prediction, early = model(sound)
        loss = loss_fn(prediction, early, words)
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

    model = Speech(load_weights(args.weights))
    optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
