"""Trains mnist_cnn with TensorFlow."""

import argparse
import functools
import math
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 256
LEARNING_RATE = 1e-4
RHO = 0.9
EPSILON = 1e-7


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32) / 255.0
    x = x.transpose(0, 2, 3, 1)
    y = data["y"].astype(np.int32)
    return x, y


def batches(arrays):
    """Endless batches of rows in random order."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    data = tf.data.Dataset.from_tensor_slices(arrays)
    data = data.shuffle(len(arrays[0])).batch(BATCH_SIZE, drop_remainder=True)
    return iter(data.repeat().prefetch(tf.data.AUTOTUNE))


def linear(x, weight, bias):
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


def glorot_uniform(shape):
    fan_in, fan_out = (math.prod(shape[:-2]) * n for n in shape[-2:])
    limit = math.sqrt(6 / (fan_in + fan_out))
    return tf.random.uniform(shape, -limit, limit)


class MnistCnn(tf.Module):
    def __init__(self):
        super().__init__()
        self.conv1_weight = tf.Variable(glorot_uniform((3, 3, 1, 32)))
        self.conv1_bias = tf.Variable(tf.zeros((32,)))
        self.conv2_weight = tf.Variable(glorot_uniform((3, 3, 32, 32)))
        self.conv2_bias = tf.Variable(tf.zeros((32,)))
        self.conv3_weight = tf.Variable(glorot_uniform((3, 3, 32, 32)))
        self.conv3_bias = tf.Variable(tf.zeros((32,)))
        self.conv4_weight = tf.Variable(glorot_uniform((3, 3, 32, 64)))
        self.conv4_bias = tf.Variable(tf.zeros((64,)))
        self.fc1_weight = tf.Variable(glorot_uniform((4096, 128)))
        self.fc1_bias = tf.Variable(tf.zeros((128,)))
        self.fc2_weight = tf.Variable(glorot_uniform((128, 10)))
        self.fc2_bias = tf.Variable(tf.zeros((10,)))

    def __call__(self, x):
        x = tf.nn.conv2d(x, self.conv1_weight, strides=1, padding="VALID")
        x = tf.nn.bias_add(x, self.conv1_bias)
        x = tf.nn.relu(x)
        x = tf.nn.conv2d(x, self.conv2_weight, strides=1, padding="VALID")
        x = tf.nn.bias_add(x, self.conv2_bias)
        x = tf.nn.relu(x)
        x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")
        x = tf.nn.conv2d(x, self.conv3_weight, strides=1, padding="VALID")
        x = tf.nn.bias_add(x, self.conv3_bias)
        x = tf.nn.relu(x)
        x = tf.nn.conv2d(x, self.conv4_weight, strides=1, padding="VALID")
        x = tf.nn.bias_add(x, self.conv4_bias)
        x = tf.nn.relu(x)
        x = tf.reshape(x, (-1, 4096))
        x = linear(x, self.fc1_weight, self.fc1_bias)
        x = tf.nn.relu(x)
        return linear(x, self.fc2_weight, self.fc2_bias)


def loss_fn(logits, y):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return tf.reduce_mean(losses)


def zeros_like(variables):
    return [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]


class RMSprop(tf.Module):
    """Divides by sqrt(v) + epsilon, v the mean square of the gradient."""

    def __init__(self, variables):
        super().__init__()
        self.targets = list(variables)
        self.squares = zeros_like(variables)

    def apply_gradients(self, gradients):
        for variable, g, square in zip(
            self.targets, gradients, self.squares, strict=True
        ):
            square.assign_add((1 - RHO) * (tf.square(g) - square))
            step = g / (tf.sqrt(square) + EPSILON)
            variable.assign_sub(LEARNING_RATE * step)


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

    model = MnistCnn()
    optimizer = RMSprop(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
