"""Trains mlp_small with TensorFlow."""

import argparse
import functools
import math
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
BETA_1 = 0.9
BETA_2 = 0.999
EPSILON = 1e-7

tf.config.experimental.enable_tensor_float_32_execution(True)


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
    y = data["y"].astype(np.int32)
    return x, y


def batches(arrays):
    """Endless batches of rows in random order."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    data = tf.data.Dataset.from_tensor_slices(arrays)
    data = data.shuffle(len(arrays[0])).batch(BATCH_SIZE, drop_remainder=True)
    return iter(data.repeat().prefetch(tf.data.AUTOTUNE))


def half(x):
    return tf.cast(x, tf.float16)


def in_float32(function, x, *arguments, **options):
    """What adds up many elements, here or for a gradient; x comes in half precision."""
    return half(function(tf.cast(x, tf.float32), *arguments, **options))


def linear(x, weight, bias):
    """tf.matmul would repeat the weight for every row of a sequence."""
    return in_float32(tf.nn.bias_add, tf.tensordot(x, weight, axes=1), bias)


def glorot_uniform(shape):
    fan_in, fan_out = (math.prod(shape[:-2]) * n for n in shape[-2:])
    limit = math.sqrt(6 / (fan_in + fan_out))
    return tf.random.uniform(shape, -limit, limit)


class MlpSmall(tf.Module):
    def __init__(self):
        super().__init__()
        self.fc1_weight = tf.Variable(glorot_uniform((100, 128)))
        self.fc1_bias = tf.Variable(tf.zeros((128,)))
        self.fc2_weight = tf.Variable(glorot_uniform((128, 10)))
        self.fc2_bias = tf.Variable(tf.zeros((10,)))

    def __call__(self, x):
        x = half(x)
        x = linear(x, half(self.fc1_weight), self.fc1_bias)
        x = tf.nn.relu(x)
        logits = linear(x, half(self.fc2_weight), self.fc2_bias)
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


def train_step(model, optimizer, x, y):
    with tf.GradientTape() as tape:
        prediction = model(x)
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
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = MlpSmall()
    optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
