"""Trains alexnet_small with TensorFlow."""

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
DROPOUT_RATE = 0.5

# float32 means float32, also on a GPU that has TF32.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
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


@tf.function(jit_compile=True)
def conv2d_xla(x, kernel, *, strides, padding, dilations):
    """For convolutions whose gradient TensorFlow's own CPU kernels lack."""
    return tf.nn.conv2d(x, kernel, strides, padding, dilations=dilations)


def local_response_norm(x, *, size, alpha, beta, k):
    """As tf.nn.local_response_normalization, which has no float64 and odd sizes only."""
    channels = x.shape[-1]
    sides = [size // 2, (size - 1) // 2]
    squares = tf.pad(x * x, [[0, 0], [0, 0], [0, 0], sides])
    total = tf.add_n([squares[..., i : i + channels] for i in range(size)])
    return x / (k + alpha * total) ** beta


class AlexnetSmall(tf.Module):
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
        self.conv5_weight = tf.Variable(weights["conv5_weight"])
        self.conv5_bias = tf.Variable(weights["conv5_bias"])
        self.fc6_weight = tf.Variable(weights["fc6_weight"])
        self.fc6_bias = tf.Variable(weights["fc6_bias"])
        self.fc7_weight = tf.Variable(weights["fc7_weight"])
        self.fc7_bias = tf.Variable(weights["fc7_bias"])
        self.fc8_weight = tf.Variable(weights["fc8_weight"])
        self.fc8_bias = tf.Variable(weights["fc8_bias"])

    def __call__(self, x):
        x = tf.nn.conv2d(x, self.conv1_weight, strides=4, padding="VALID")
        x = tf.nn.bias_add(x, self.conv1_bias)
        x = tf.nn.relu(x)
        x = local_response_norm(x, size=5, alpha=1e-4, beta=0.75, k=2.0)
        x = tf.nn.max_pool2d(x, ksize=3, strides=2, padding="VALID")
        x = conv2d_xla(
            x, self.conv2_weight, strides=1, padding="SAME", dilations=(1, 1)
        )
        x = tf.nn.bias_add(x, self.conv2_bias)
        x = tf.nn.relu(x)
        x = local_response_norm(x, size=5, alpha=1e-4, beta=0.75, k=2.0)
        x = tf.nn.max_pool2d(x, ksize=3, strides=2, padding="VALID")
        x = tf.nn.conv2d(x, self.conv3_weight, strides=1, padding="SAME")
        x = tf.nn.bias_add(x, self.conv3_bias)
        x = tf.nn.relu(x)
        x = conv2d_xla(
            x, self.conv4_weight, strides=1, padding="SAME", dilations=(1, 1)
        )
        x = tf.nn.bias_add(x, self.conv4_bias)
        x = tf.nn.relu(x)
        x = conv2d_xla(
            x, self.conv5_weight, strides=1, padding="SAME", dilations=(1, 1)
        )
        x = tf.nn.bias_add(x, self.conv5_bias)
        x = tf.nn.relu(x)
        x = tf.nn.max_pool2d(x, ksize=3, strides=2, padding="VALID")
        x = tf.reshape(x, (-1, 32))
        x = linear(x, self.fc6_weight, self.fc6_bias)
        x = tf.nn.relu(x)
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        x = linear(x, self.fc7_weight, self.fc7_bias)
        x = tf.nn.relu(x)
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        return linear(x, self.fc8_weight, self.fc8_bias)


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
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = AlexnetSmall(load_weights(args.weights))
    optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
