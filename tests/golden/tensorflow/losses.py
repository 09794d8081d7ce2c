"""Trains losses with TensorFlow."""

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
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
    x = x.transpose(0, 2, 3, 1)
    y = data["y"].astype(np.int32)
    t = data["t"].astype(np.float32)
    t = t.transpose(0, 2, 3, 1)
    return x, y, t


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
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


class Losses(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.trunk_weight = tf.Variable(weights["trunk_weight"])
        self.trunk_bias = tf.Variable(weights["trunk_bias"])
        self.decoder_weight = tf.Variable(weights["decoder_weight"])
        self.decoder_bias = tf.Variable(weights["decoder_bias"])
        self.head_weight = tf.Variable(weights["head_weight"])
        self.head_bias = tf.Variable(weights["head_bias"])
        self.aux_weight = tf.Variable(weights["aux_weight"])
        self.aux_bias = tf.Variable(weights["aux_bias"])

    def __call__(self, x):
        x = tf.nn.conv2d(x, self.trunk_weight, strides=1, padding="SAME")
        x = tf.nn.bias_add(x, self.trunk_bias)
        x = tf.nn.relu(x)
        picture = tf.nn.conv2d(x, self.decoder_weight, strides=1, padding="VALID")
        picture = tf.nn.bias_add(picture, self.decoder_bias)
        x = tf.reshape(x, (-1, 32))
        logits = linear(x, self.head_weight, self.head_bias)
        x = linear(x, self.aux_weight, self.aux_bias)
        return logits, x, picture


def loss_fn(logits, output_2, picture, y, t):
    kept = tf.not_equal(y, -100)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.where(kept, y, 0), logits=logits
    )
    losses = tf.where(kept, losses, tf.zeros_like(losses))
    count = tf.math.count_nonzero(kept, dtype=losses.dtype)
    main_loss = tf.reduce_sum(losses) / tf.maximum(count, 1)
    kept = tf.not_equal(y, -100)
    smoothed = tf.one_hot(
        tf.where(kept, y, 0),
        output_2.shape[-1],
        1 - 0.1 + 0.1 / output_2.shape[-1],
        0.1 / output_2.shape[-1],
        dtype=output_2.dtype,
    )
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=smoothed, logits=output_2)
    losses = tf.where(kept, losses, tf.zeros_like(losses))
    count = tf.math.count_nonzero(kept, dtype=losses.dtype)
    aux_loss = tf.reduce_sum(losses) / tf.maximum(count, 1)
    losses = tf.math.squared_difference(picture, t)
    error = tf.reduce_mean(losses)
    losses = tf.abs(picture - t)
    part = tf.reduce_sum(losses)
    loss = main_loss + 0.3 * aux_loss + error - 0.001 * part
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


def train_step(model, optimizer, x, y, t):
    with tf.GradientTape() as tape:
        prediction, output_2, picture = model(x)
        loss = loss_fn(prediction, output_2, picture, y, t)
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

    model = Losses(load_weights(args.weights))
    optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
