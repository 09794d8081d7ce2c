"""Trains mnist_cnn with TensorFlow."""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 256
LEARNING_RATE = 1e-4
RHO = 0.9
EPSILON = 1e-7

# float32 means float32, also on a GPU that has TF32.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32) / 255.0
    x = x.transpose(0, 2, 3, 1)
    y = data["y"].astype(np.int32)
    return x, y


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


class MnistCnn(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.conv1_weight = tf.Variable(weights["conv1_weight"])
        self.conv1_bias = tf.Variable(weights["conv1_bias"])
        self.conv2_weight = tf.Variable(weights["conv2_weight"])
        self.conv2_bias = tf.Variable(weights["conv2_bias"])
        self.conv3_weight = tf.Variable(weights["conv3_weight"])
        self.conv3_bias = tf.Variable(weights["conv3_bias"])
        self.conv4_weight = tf.Variable(weights["conv4_weight"])
        self.conv4_bias = tf.Variable(weights["conv4_bias"])
        self.fc1_weight = tf.Variable(weights["fc1_weight"])
        self.fc1_bias = tf.Variable(weights["fc1_bias"])
        self.fc2_weight = tf.Variable(weights["fc2_weight"])
        self.fc2_bias = tf.Variable(weights["fc2_bias"])

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


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = MnistCnn(load_weights(args.weights))
    optimizer = RMSprop(model.trainable_variables)
    data = batches(load_data(args.data))
    for step in range(args.steps):
        loss = train_step(model, optimizer, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
