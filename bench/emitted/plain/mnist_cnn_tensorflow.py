"""The CNN of recipes/mnist_cnn.toml in TensorFlow, as one would type it."""

# mypy: ignore-errors

import numpy as np
import tensorflow as tf
from pairing.bursts import Bursts
from safetensors.numpy import load_file

BATCH = 256
RATE, RHO, EPS = 1e-4, 0.9, 1e-7


def native(name, w):
    """Canonical weights in N,H,W,C order."""
    if w.ndim == 4:
        return w.transpose(2, 3, 1, 0)
    if name == "fc1.weight":  # reads pictures of 64 channels, 8 by 8
        return w.reshape(128, 64, 8, 8).transpose(2, 3, 1, 0).reshape(4096, 128)
    return w.T


class Net(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.p = {n: tf.Variable(native(n, w)) for n, w in weights.items()}
        self.v = {n: tf.Variable(tf.zeros_like(p)) for n, p in self.p.items()}

    def conv(self, x, name):
        x = tf.nn.conv2d(x, self.p[name + ".weight"], 1, "VALID")
        return tf.nn.relu(tf.nn.bias_add(x, self.p[name + ".bias"]))

    def dense(self, x, name):
        return tf.matmul(x, self.p[name + ".weight"]) + self.p[name + ".bias"]

    def __call__(self, x):
        x = self.conv(self.conv(x, "conv1"), "conv2")
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = self.conv(self.conv(x, "conv3"), "conv4")
        x = tf.reshape(x, [-1, 4096])
        return self.dense(tf.nn.relu(self.dense(x, "fc1")), "fc2")

    @tf.function
    def train_step(self, x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, self(x))
            loss = tf.reduce_mean(losses)
        names = list(self.p)
        grads = tape.gradient(loss, [self.p[name] for name in names])
        for name, g in zip(names, grads, strict=True):
            v = self.v[name]
            v.assign(RHO * v + (1 - RHO) * tf.square(g))
            self.p[name].assign_sub(RATE * g / (tf.sqrt(v) + EPS))
        return loss


def train(bursts: Bursts, data: str, weights: str) -> None:
    tensors = load_file(data)
    x = (tensors["x"].astype(np.float32) / 255).transpose(0, 2, 3, 1)
    y = tensors["y"].astype(np.int32)
    starts = range(0, len(x) - BATCH + 1, BATCH)
    batches = [
        (tf.constant(x[i : i + BATCH]), tf.constant(y[i : i + BATCH])) for i in starts
    ]
    net = Net(load_file(weights))
    step = 0
    for steps in bursts:
        for _ in range(steps):
            x, y = batches[step % len(batches)]
            step += 1
            loss = net.train_step(x, y)
        net.p["conv1.weight"].numpy()  # written last of all: the step is complete
        bursts.done(float(loss))
